"""How many datagrams a second does a program read, of those that its host is sent?"""

from __future__ import annotations

import json

from wiretwin.model.gigabit import of_stack
from wiretwin.papers.flood import flood

SIZE = 100
GAPS_US = (200, 100, 60, 50, 40, 30, 20, 18)


def network(*, frames: int, wait_us: float) -> str:
    """Return a Pentium III that receives from two senders whose own work costs nothing.

    Its adapter interrupts it after `frames` frames, or `wait_us` after the first of them.

    The adapter's own processor takes a microsecond a frame, so that the host is what binds.
    """
    config = json.loads(of_stack("socket/tcp/gige", "acenic").lan_json())
    receiver = config["hosts"][0]
    free = {name: {"call_ps": 0, "byte_ps": 0} for name in receiver["prices"]}
    sender = receiver | {"name": "sender", "prices": free}
    gige = config["gige"]
    gige["switch"] = {"forwarding": "stored", "latency_ps": 1_000_000, "port_bytes": 1 << 16}
    gige["adapter"] |= {
        "receive_frames": 256,
        "frame_ps": 1_000_000,
        "coalesce_frames": frames,
        "coalesce_ps": round(wait_us * 1e6),
        "pause": False,
    }
    return json.dumps(config | {"stack": "socket/udp/gige", "hosts": [receiver, sender, sender]})


def main() -> None:
    """Print a row for each rate, without coalescing and with it."""
    print(f"{'':>8} {'':>7} | {'an interrupt a frame':^30} | {'one for 16, or 200 us':^30}")
    print(f"{'offered':>8} {'busy':>7} |" + f" {'read':>8} {'unread':>10} {'lost':>10} |" * 2)
    networks = [network(frames=1, wait_us=0), network(frames=16, wait_us=200)]
    for gap_us in GAPS_US:
        each, many = (flood(one, SIZE, gap_us) for one in networks)
        row = f"{each.offered:8.0f} {each.busy_share:7.2f} |"
        for found in (each, many):
            row += f" {found.got:8.0f} {found.unread:10.0f} {found.lost:10.0f} |"
        print(row)


if __name__ == "__main__":
    main()
