"""rubato.Hosts: several processes that train one run, and come and go."""

import os


class Hosts:
    """The meeting point of an elastic run, for `rubato.train(hosts=...)`: each host is a process that makes the same
    call. One of them writes the run folder, and another one takes over if it is lost (docs/hosts.md).

    rendezvous:
        "HOST:PORT/NAME": a `rubato rendezvous`, and a name of the run that is used only once.
    count, least, most:
        the run begins with `count` hosts, continues with at least `least`, and computes with at most `most`. [1, 1, as
        many as count]
    weight:
        the share of a step that this host computes, relative to the others.
    interface:
        the address or network interface at which the other hosts reach this one.
    token_file:
        a file with a secret that every host needs.
    timeout:
        the seconds after which a host that lets the others wait is lost; longer than the longest step.
    """

    def __init__(self, rendezvous, count=1, least=1, most=None, *, weight=1.0, interface="127.0.0.1", token_file=None,
                 timeout=300.0):
        if "/" not in rendezvous:
            raise ValueError(f"rendezvous: '{rendezvous}' names no run; accepted: HOST:PORT/NAME")
        self._arguments = (rendezvous, int(count), int(least), int(count if most is None else most), float(weight),
                           interface, "" if token_file is None else os.fspath(token_file), float(timeout))

    def _set_in(self, request):
        """Adds the meeting point to a request, as C++ takes it."""
        request.set_hosts(*self._arguments)
