// Why a load test came to nothing: as for each other command.
package import HubCommandLine

package typealias LoadTestError = CommandError
