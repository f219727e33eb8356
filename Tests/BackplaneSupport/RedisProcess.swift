// A real engine for tests: redis-server, or valkey-server, as a process of this test, on a free port, without a disk.
import Foundation

public final class RedisProcess {
  public let port: UInt16
  private let arguments: [String]
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
        "--logfile", "/dev/null", "--dir", NSTemporaryDirectory(),
      ] + more
    try start()
  }

  deinit { kill() }

  /// Starts it again, empty, after `kill`.
  public func start() throws {
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

  /// Stops it where it is, as a machine that hangs, and lets it go on.
  public func stall() { Foundation.kill(process.processIdentifier, SIGSTOP) }

  public func resume() { Foundation.kill(process.processIdentifier, SIGCONT) }
}
