"""A detector as it was before a batch: what is put back where that can not be taken, so that its owner may go on.

scan, summaries, numbers      copied, where functions of users or integers that must fit may fail half way
events that wait, promises    as they are: they change when all else has succeeded
"""

import copy
from typing import TYPE_CHECKING, Any

from frames.scans.scan import Scan

if TYPE_CHECKING:
    from frames.finding.core import DetectorCore

REPLACED = ("next", "held", "closed", "ended", "lost")  # of a core, by others


class AsItWas:
    """Of a core that is about to take events. Owns copies of all that a batch changes before it is certain."""

    def __init__(self, core: "DetectorCore", scan: Scan) -> None:
        self.scan, self.over = scan, scan.over
        self.arrays = scan.saved()
        self.replaced: dict[str, Any] = {name: getattr(core, name) for name in REPLACED}
        self.events, self.ties = copy.copy(core.events), copy.deepcopy(core.ties)
        follower = core.follower
        self.said = copy.deepcopy(follower.state()) if follower is not None and follower.may_fail else None

    def put_back(self, core: "DetectorCore") -> None:
        """Nothing of the batch is left."""
        for name, value in self.arrays.items():
            setattr(self.scan, name, value)
        self.scan.over = self.over
        if self.scan.deadlines is not None:
            self.scan.deadlines.forget()
        for name, value in self.replaced.items():
            setattr(core, name, value)
        core.events, core.ties = self.events, self.ties
        if self.said is not None and core.follower is not None:
            core.follower.restore(self.said)
