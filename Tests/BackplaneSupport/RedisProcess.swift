// A real engine for tests: redis-server, or valkey-server, as a process of this test, on a free port, without a disk.
import Foundation

public final class RedisProcess {
  public let port: UInt16
  private let arguments: [String]
  /// A folder of its own, for what it writes where it has a replica or is a sentinel.
  private let folder = NSTemporaryDirectory() + "engine-\(UUID().uuidString)"
  /// A sentinel's.
  private var configuration: String?
  private var process = Process()

  /// The engine's executable; nil where none is installed, and then tests of it are skipped and say so.
  public static let executable: String? = ["/usr/bin", "/usr/local/bin", "/usr/sbin"].flatMap { folder in
    ["\(folder)/redis-server", "\(folder)/valkey-server"]
  }.first { FileManager.default.isExecutableFile(atPath: $0) }

  /// Starts an engine and returns when it listens.
  public init(port: UInt16, _ more: [String] = []) throws {
    self.port = port
    arguments =
      [
        "--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no",
        "--logfile", folder + "/log", "--dir", folder,
      ] + more
    try start()
  }

  /// Starts a sentinel, which watches a master with those it hears of there; `quorum` of them make a decision. `more`
  /// lines stand behind the others.
  public init(
    sentinel port: UInt16, of master: UInt16, name: String, quorum: Int = 2, _ more: [String] = []
  ) throws {
    self.port = port
    let file = folder + "/sentinel.conf"
    let lines = [
      "port \(port)", "bind 127.0.0.1", "dir \(folder)", "logfile \(folder)/log",
      "sentinel monitor \(name) 127.0.0.1 \(master) \(quorum)", "sentinel down-after-milliseconds \(name) 300",
      "sentinel failover-timeout \(name) 3000",
    ]
    configuration = (lines + more).joined(separator: "\n") + "\n"
    arguments = [file, "--sentinel"]
    try start()
  }

  deinit {
    kill()
    do { try FileManager.default.removeItem(atPath: folder) } catch { print("\(folder) stays: \(error)") }
  }

  public var isRunning: Bool { process.isRunning }

  /// The last lines of its log, for who has to find out why a test failed.
  public var lastLog: String {
    do {
      let lines = try String(contentsOfFile: folder + "/log", encoding: .utf8).split(separator: "\n")
      return lines.suffix(40).joined(separator: "\n")
    } catch {
      return "\(error)"
    }
  }

  /// What it answers to a command without quotes, as bytes come: nothing where nothing came within 10 s.
  public func reply(to command: String) -> String {
    let socket = Foundation.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(socket) }
    var patience = timeval(tv_sec: 10, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isConnected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket, $0, size) == 0 }
    }
    guard isConnected else { return "" }
    _ = Array("\(command)\r\n".utf8).withUnsafeBytes { write(socket, $0.baseAddress, $0.count) }
    var bytes = [UInt8](repeating: 0, count: 16_384)
    var count = 0
    repeat {
      count = bytes.withUnsafeMutableBytes { read(socket, $0.baseAddress, $0.count) }
    } while count < 0 && errno == EINTR
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }

  /// Starts it again, empty, after `kill`.
  public func start() throws {
    if FileManager.default.fileExists(atPath: folder) { try FileManager.default.removeItem(atPath: folder) }
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try configuration?.write(toFile: folder + "/sentinel.conf", atomically: true, encoding: .utf8)
    process = Process()
    process.executableURL = URL(filePath: RedisProcess.executable ?? "")
    process.arguments = arguments
    process.standardOutput = FileHandle.nullDevice
    try process.run()
  }

  public func kill() {
    guard process.isRunning else { return }
    Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// Suspends it, as a machine that hangs, and resumes it.
  public func stall() { Foundation.kill(process.processIdentifier, SIGSTOP) }

  public func resume() { Foundation.kill(process.processIdentifier, SIGCONT) }
}
