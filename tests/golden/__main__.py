"""Compare all cases of the library with what is recorded of them, or record them anew."""

import sys

from . import LIBRARY

sys.exit(LIBRARY.main(sys.argv[1:]))
