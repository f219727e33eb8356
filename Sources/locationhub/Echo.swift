// `echo`: the WebSocket code without the hub, for conformance suites.
import Glibc
import HubCommandLine
import HubGateway
import HubSystem

let echo = Verb(
  name: "echo", operands: "",
  summary: """
    Echoes WebSocket messages, for conformance suites.
    A message may have 16 MiB and 65,536 fragments.
    Prints "listening on ws://HOST:PORT" on standard output when it is ready.
    """,
  options: [
    Option("host", "ADDRESS", "numeric address to listen on (127.0.0.1)"),
    Option("port", "PORT", "TCP port; 0 picks a free one (9001)"),
  ],
  run: { (arguments) throws(CommandError) in
    let port = try arguments.value("port", .whole(0...65535)) ?? 9001
    let server: EchoServer
    do throws(ServerError) {
      server = try EchoServer(host: arguments.string("host") ?? "127.0.0.1", port: UInt16(port))
    } catch {
      throw .failed("\(error)")
    }
    StandardStream.output.write("listening on ws://\(server.address)\n")
    do throws(SystemError) { try server.run(until: [SIGTERM, SIGINT]) } catch { throw .failed("\(error)") }
    return .ok
  })
