"""Compare all cases with what is recorded of them, or record them anew."""

import sys

from . import CASES, differences, here, record, recorded

if sys.argv[1:2] == ["--record"] and set(sys.argv[2:]) <= CASES.keys():
    record(sys.argv[2:])
elif sys.argv[1:]:
    sys.exit("usage: python -m tests.golden [--record [NAME ..]]")
else:
    expected, different = recorded(), 0
    print(f"compared on {here()}")
    for name in sorted(CASES):
        case = expected.get(name, {"recorded on": "no machine", "computed": {}})
        if parts := differences(name, case["computed"]):
            different += 1
            print(f"{name}, recorded on {case['recorded on']}: {', '.join(parts)}")
    print(f"{different} of {len(CASES)} cases differ")
    sys.exit(bool(different) or expected.keys() != CASES.keys())
