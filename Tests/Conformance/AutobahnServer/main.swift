// The server's half of the WebSocket code, without the hub, for the Autobahn suite: echoes every message. One may have
// 16 MiB and 65,536 fragments.
//
//     hub-autobahn-server [PORT]        on 127.0.0.1; 0, which is the default, picks a free port
//
// Prints "listening on ws://HOST:PORT" on standard output when it is ready. Exit code 1 when it cannot start.

import Glibc
import HubSystem

do {
  guard let port = UInt16(CommandLine.arguments.dropFirst().first ?? "0") else {
    throw EchoServerError.start("PORT must be 0 to 65535")
  }
  let server = try EchoServer(host: "127.0.0.1", port: port)
  StandardStream.output.write("listening on ws://\(server.address)\n")
  try server.run(until: [SIGTERM, SIGINT])
} catch {
  StandardStream.error.write("hub-autobahn-server: \(error)\n")
  exit(1)
}
