"""Gives each request of schemathesis a development credential whose role opens the endpoint, and puts all fences under
eight ids: a hub with 16 roaming ones has no room for more, which is a 503."""
import re

import schemathesis

from hub import IDS, role_for


@schemathesis.hook
def before_call(context, case, kwargs):
    role = role_for(case.path)
    case.query = {**(case.query or {}), "role": role, "id": IDS[role]}
    fence = (case.path_parameters or {}).get("fenceId")
    if isinstance(fence, str) and re.fullmatch(r"[A-Za-z0-9._-]{1,64}", fence):
        case.path_parameters["fenceId"] = f"fence-{len(fence) % 8}"
