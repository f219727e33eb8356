// The hub under test: a process of its own, on a core of its own where there is more than one.
import Glibc
import Transport

public struct ServerProcess {
  public let pid: pid_t
  public let address: SocketAddress
  /// Where its words come out: open as long as it runs, so that it can say more than one.
  private let output: Int32

  /// Starts `locationhub serve` and waits for its line. `cpus` as for taskset, or nil.
  public init?(executable: String, arguments: [String], cpus: String?) {
    var pipeEnds: [Int32] = [0, 0]
    guard pipe(&pipeEnds) == 0 else { return nil }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, pipeEnds[1], 1)
    posix_spawn_file_actions_addclose(&actions, pipeEnds[0])
    let words = (cpus.map { ["taskset", "-c", $0] } ?? []) + [executable] + arguments
    var argv: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { for word in argv { free(word) } }
    var pid: pid_t = 0
    guard posix_spawnp(&pid, words[0], &actions, nil, &argv, environ) == 0 else { return nil }
    close(pipeEnds[1])
    guard let line = ServerProcess.readLine(pipeEnds[0]), let address = ServerProcess.address(in: line) else {
      Glibc.kill(pid, SIGKILL)
      close(pipeEnds[0])
      return nil
    }
    output = pipeEnds[0]
    self.pid = pid
    self.address = address
  }

  private static func readLine(_ descriptor: Int32) -> String? {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while read(descriptor, &byte, 1) == 1 {
      if byte == 10 { return String(decoding: line, as: UTF8.self) }
      line.append(byte)
    }
    return nil
  }

  /// `listening on http://127.0.0.1:8080 …`
  private static func address(in line: String) -> SocketAddress? {
    guard let start = line.range(of: "://") else { return nil }
    let authority = line[start.upperBound...].prefix { $0 != " " }
    guard let colon = authority.lastIndex(of: ":"), let port = UInt16(authority[authority.index(after: colon)...])
    else { return nil }
    return SocketAddress(host: String(authority[..<colon]), port: port)
  }

  /// User and system seconds so far.
  public var cpu: (user: Double, system: Double) {
    guard let bytes = contents("/proc/\(pid)/stat") else { return (0, 0) }
    // The second field, the name, may hold spaces; what follows it does not.
    let fields = bytes[(bytes.lastIndex(of: ")") ?? bytes.startIndex)...].split(separator: " ")
    guard fields.count > 13, let user = Double(fields[12]), let system = Double(fields[13]) else { return (0, 0) }
    let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
    return (user / ticks, system / ticks)
  }

  public var residentBytes: Int {
    guard let text = contents("/proc/\(pid)/statm") else { return 0 }
    let fields = text.split(separator: " ")
    return fields.count > 1 ? (Int(fields[1]) ?? 0) * sysconf(Int32(_SC_PAGESIZE)) : 0
  }

  private func contents(_ path: String) -> String? {
    do throws(SystemError) { return String(decoding: try readFile(path), as: UTF8.self) } catch { return nil }
  }

  /// Ends it in order, and waits for that.
  public func stop() { end(SIGTERM) }

  /// Ends it as if it had crashed, at whatever it is doing.
  public func kill() { end(SIGKILL) }

  private func end(_ signal: Int32) {
    Glibc.kill(pid, signal)
    var status: Int32 = 0
    waitpid(pid, &status, 0)
    close(output)
  }
}

extension String {
  fileprivate func range(of word: String) -> Range<String.Index>? {
    var start = startIndex
    while start < endIndex {
      if self[start...].hasPrefix(word) { return start..<index(start, offsetBy: word.count) }
      start = index(after: start)
    }
    return nil
  }
}
