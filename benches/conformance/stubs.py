"""What names lead to in rows that are not the CA's: web servers and name servers of a few lines. Each lives as long as the process."""

import socket
import threading


def web(what):
    """Starts a web server that redirects to itself (loop), never ends a page (endless), or says nothing (silent); its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(stream):
        try:
            path = stream.recv(4096).decode(errors="replace").split(" ")[1]
            if what == "loop":
                target = f"Location: http://www.example.com{path}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                stream.sendall(f"HTTP/1.1 302 Found\r\n{target}".encode())
            elif what == "endless":
                stream.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
                while True:
                    stream.sendall(b"x" * 4096)
            else:
                stream.recv(1)
        except (OSError, IndexError):
            pass
        finally:
            stream.close()

    def listen():
        while True:
            stream, _ = listener.accept()
            threading.Thread(target=serve, args=(stream,), daemon=True).start()

    threading.Thread(target=listen, daemon=True).start()
    return listener.getsockname()[1]


def dns(what):
    """Starts a name server that says NXDOMAIN, SERVFAIL, that names are aliases of themselves (loop), or nothing (silent); its port."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind(("127.0.0.1", 0))

    def serve():
        while True:
            query, asker = listener.recvfrom(512)
            if what == "silent":
                continue
            # Its header, then the name, its end, type and class (RFC 1035 §4.1).
            answer = bytearray(query[: query.index(0, 12) + 5])
            answer[2] = 0x81
            answer[6:12] = bytes(6)
            answer[3] = 0x80 | {"nxdomain": 3, "servfail": 2, "loop": 0}[what]
            if what == "loop":
                answer[7] = 1
                # The name in question, CNAME, IN, a minute, two octets: the name in question.
                answer += bytes([0xC0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 2, 0xC0, 12])
            listener.sendto(answer, asker)

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]
