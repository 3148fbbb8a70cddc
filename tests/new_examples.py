"""Examples by chance: the same in each run of the tests, so that none fails of itself one day.

``make new-examples`` draws others, as ``make simulate-new`` plays new seeds.
"""

import os
from typing import Final

NEW_EXAMPLES: Final = int(os.environ.get("WADDLE_NEW_EXAMPLES") or 0)
"""The number of new examples for each property; 0 for the fixed examples."""
