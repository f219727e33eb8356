// locationhub: one executable for the hub and what goes with it.
import Glibc
import HubCommandLine
import HubSystem

StandardStream.fillGaps()
do throws(CommandError) {
  let code = try Verbs.run(Array(CommandLine.arguments.dropFirst()))
  if let error = StandardStream.outputError { throw .failed("\(error)") }
  exit(code.rawValue)
} catch {
  StandardStream.error.write("locationhub: \(error)\n")
  exit(error.code.rawValue)
}
