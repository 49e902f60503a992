"""Readers for what NetPIPE, OSU, IMB, sockperf and iperf3 write, into our result model.

- `reading`: what every reader gives, and how it rejects
- `netpipe`, `columns` (OSU, IMB), `sockperf`, `iperf3`: one reader a format
- `bring`: files into a result folder
"""
