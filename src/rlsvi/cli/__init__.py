"""The command line: progress on stderr, results on stdout, exit code 0 only when it worked."""
