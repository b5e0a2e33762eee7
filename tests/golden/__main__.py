"""Compare the digests of all cases with those recorded, or record them anew."""

import sys

from . import CASES, differences, here, record, recorded

if sys.argv[1:] == ["--record"]:
    record()
elif sys.argv[1:]:
    sys.exit("usage: python -m tests.golden [--record]")
else:
    where, expected = recorded()
    print(f"recorded on {where}\ncompared on {here()}")
    different = {name: parts for name in sorted(CASES) if (parts := differences(name, expected.get(name, {})))}
    for name, parts in different.items():
        print(f"{name}: {', '.join(parts)}")
    print(f"{len(different)} of {len(CASES)} cases differ")
    sys.exit(bool(different) or expected.keys() != CASES.keys())
