// Why a load test came to nothing: as for each other command.
import HubCommandLine

package typealias LoadTestError = CommandError
