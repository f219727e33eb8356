// Notices to a service manager such as systemd, and the sockets it passes: sd_notify(3) and sd_listen_fds(3), without
// their library. A notice is one datagram; the sockets are described by three variables of the environment.
import Glibc
import Synchronization

/// The service manager that started this process, if it wants notices. A notice that it does not take is lost.
public final class ServiceManager: Sendable {
  private let socket: Descriptor
  private let path: [UInt8]
  /// The interval of watchdog notices, in nanoseconds; nil where none are wanted.
  private let watchdogInterval: Int64?
  private let lastSign = Atomic<Int64>(.min)
  private let lastExtension = Atomic<Int64>(.min)

  /// From `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`; nil without the first.
  public init?(environment: [String: String], pid: Int32? = nil) throws(SystemError) {
    guard let name = environment["NOTIFY_SOCKET"], name.hasPrefix("/") || name.hasPrefix("@") else { return nil }
    // An abstract name begins with a zero byte (unix(7)).
    path = name.hasPrefix("@") ? [0] + name.dropFirst().utf8 : Array(name.utf8)
    guard path.count < 108 else { throw SystemError(call: "sendto", errno: ENAMETOOLONG) }
    let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    socket = try Descriptor(Glibc.socket(AF_UNIX, type, 0), from: "socket")
    let isMine = environment["WATCHDOG_PID"].map { $0 == "\(pid ?? getpid())" } ?? true
    // Twice as often as asked for, as sd_watchdog_enabled(3) advises.
    watchdogInterval = isMine ? environment["WATCHDOG_USEC"].flatMap { Int64($0) }.map { $0 * 1000 / 2 } : nil
  }

  /// Reports that the hub serves. `status` is shown to people.
  public func ready(_ status: String) { send("READY=1\nSTATUS=\(status)") }

  /// Reports that the hub begins to stop.
  public func stopping() { send("STOPPING=1\nSTATUS=draining") }

  /// Reports that the hub reads its settings again (uptime, ns); `ready` reports the end of that.
  public func reloading(at uptime: Int64) { send("RELOADING=1\nMONOTONIC_USEC=\(uptime / 1000)") }

  /// Sends a watchdog notice, if one is due (uptime, ns). To be called at least once a second.
  public func alive(at uptime: Int64) {
    guard let watchdogInterval, isDue(lastSign, every: watchdogInterval, at: uptime) else { return }
    send("WATCHDOG=1")
  }

  /// Asks for half a minute more for a long start, at most every five seconds (uptime, ns).
  public func extendStart(at uptime: Int64) {
    if isDue(lastExtension, every: 5_000_000_000, at: uptime) { send("EXTEND_TIMEOUT_USEC=30000000") }
  }

  private func isDue(_ last: borrowing Atomic<Int64>, every interval: Int64, at uptime: Int64) -> Bool {
    let before = last.load(ordering: .relaxed)
    guard before == .min || uptime - before >= interval else { return false }
    return last.compareExchange(expected: before, desired: uptime, ordering: .relaxed).exchanged
  }

  private func send(_ text: String) {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path) }
    let length = socklen_t(MemoryLayout<sa_family_t>.size + path.count)
    let bytes = Array(text.utf8)
    // The C idiom: every sockaddr begins with its family, and the length says how much counts.
    _ = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { sockaddr in
        unsafe bytes.withUnsafeBytes {
          unsafe sendto(socket.raw, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT), sockaddr, length)
        }
      }
    }
  }

  /// The descriptors that the manager passes, by name (`LISTEN_FDS`, `LISTEN_FDNAMES`), in order; none where they are
  /// for another process (`LISTEN_PID`). One without a name is called `unknown`.
  public static func inherited(
    environment: [String: String], pid: Int32? = nil
  ) -> [(name: String, descriptor: Int32)] {
    guard environment["LISTEN_PID"] == "\(pid ?? getpid())",
      let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }),
      (1...64).contains(count)
    else { return [] }
    let names = (environment["LISTEN_FDNAMES"] ?? "").split(separator: ":", omittingEmptySubsequences: false)
    return (0..<count).map { number in
      let name = names.indices.contains(Int(number)) ? String(names[Int(number)]) : ""
      return (name.isEmpty ? "unknown" : name, 3 + number)
    }
  }
}
