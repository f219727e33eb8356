// What is the same for all loads that a program runs: which hub, on which cores, and when a run is this program's
// fault.
import Glibc
package import HubTransport

/// How a scenario is run.
package struct RunOptions: Sendable {
  package var executable: String
  /// Of `locationhub serve`; they win over the scenario's.
  package var serveOptions: [String] = []
  /// Cores for the hub, as for taskset.
  package var serverCPU: String?
  /// A hub that runs already, and its process where that is on this machine.
  package var address: SocketAddress?
  package var pid: Int32?
  /// Where that hub speaks TLS.
  package var tls: ServerTrust?
  /// What the hub is run by: valgrind, for instance.
  package var wrapper: [String] = []
  package var quiet = false
  /// Threads of the load; nil for as many as cores are left.
  package var threads: Int?
  /// The load is to blame past either: the share of a core of its busiest thread, and its own lateness.
  package var busyBound = 0.9
  package var latenessBoundMicroseconds = 5000.0
  /// How long the hub may take to say where it listens, and the sessions until all stand.
  package var connectSeconds = 60.0
  /// How long the hub may take to end when it is asked to.
  package var stopSeconds = HubProcess.patience
  /// What ends a run before its time.
  package var interruption = Interruption.process
  /// Distinguishes user space from the kernel by samples instead of the kernel's ticks, where this program may.
  package var samplesModes = false
  /// Called about once a second.
  package var progress: (@Sendable (String) -> Void)?

  package init(executable: String) { self.executable = executable }
}
