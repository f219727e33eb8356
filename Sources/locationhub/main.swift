// locationhub: one executable for the hub and what goes with it.
import Glibc
import HubCommandLine
import HubSystem

StandardStream.fillGaps()
do throws(CommandError) {
  exit(try Verbs.run(Array(CommandLine.arguments.dropFirst())).rawValue)
} catch {
  StandardStream.error.write("locationhub: \(error)\n")
  exit(error.code.rawValue)
}
