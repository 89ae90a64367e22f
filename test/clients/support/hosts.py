# Put before a client on PYTHONPATH as sitecustomize: has the effect of a line in /etc/hosts for one name. Connections
# to port 443 of that name go to CUTOUT_TEST_FRONT on this machine; any other name is refused.
import collections
import collections.abc
import os
import socket

front = int(os.environ["CUTOUT_TEST_FRONT"])
resolve = socket.getaddrinfo

# remove-bg 0.2.1 was written for Python 3.9, which still had this name.
collections.Callable = collections.abc.Callable


def getaddrinfo(host, port, *more, **options):
    if host != "api.remove.bg" or int(port) != 443:
        raise OSError(f"the client asks for {host}:{port}")
    return resolve("127.0.0.1", front, *more, **options)


socket.getaddrinfo = getaddrinfo
