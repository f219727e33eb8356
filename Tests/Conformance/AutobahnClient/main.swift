// Drives the Autobahn suite's fuzzing server with the client's half of the WebSocket code: every case in turn, echoing
// what comes, until the server has no more of them (../run.sh starts the server and reads its verdicts).
//
//     autobahn-client [ws://127.0.0.1:PORT]        or by AUTOBAHN_URL
//
// Exit code 0 when all cases were run, whatever came of them; 1 when the suite's own connections fail.

import Glibc
import HubClientLoop
import HubSystem

let given = CommandLine.arguments.dropFirst().first ?? getenv("AUTOBAHN_URL").map { String(cString: $0) }
do {
  guard let given, let address = try HubURL(given).address else { throw SuiteError.noURL }
  let driver = try CaseDriver(address)
  try driver.runAll(agent: "locationhub")
} catch {
  StandardStream.error.write("autobahn-client: \(error)\n")
  exit(1)
}
