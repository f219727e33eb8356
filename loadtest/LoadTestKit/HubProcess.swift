// The hub under test: a process of its own that this program starts, on cores of its own where it is told so, or one that
// runs already.
import Glibc
import Transport

package struct HubProcess {
  package let pid: pid_t
  package let address: SocketAddress
  /// Where its words come out: open as long as it runs, so that it can say more than one.
  private let output: Int32

  /// Starts `locationhub serve` and waits for its line. `cpus` as for taskset, or nil; `wrapper` is what it is run by,
  /// a program and its first arguments.
  package init(
    executable: String, arguments: [String], cpus: String? = nil, wrapper: [String] = [], quiet: Bool = false
  ) throws(LoadTestError) {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw .failed("pipe: \(SystemError.text(errno))") }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    posix_spawn_file_actions_addclose(&actions, ends[0])
    if quiet { posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0) }
    let words = (cpus.map { ["taskset", "-c", $0] } ?? []) + wrapper + [executable] + arguments
    var argv: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { for word in argv { free(word) } }
    var pid: pid_t = 0
    let outcome = posix_spawnp(&pid, words[0], &actions, nil, &argv, environ)
    close(ends[1])
    guard outcome == 0 else {
      close(ends[0])
      throw .failed("cannot start \(words[0]): \(SystemError.text(outcome))")
    }
    guard let line = HubProcess.readLine(ends[0]), let address = HubProcess.address(in: line) else {
      kill(pid, SIGKILL)
      waitpid(pid, nil, 0)
      close(ends[0])
      throw .failed("\(executable) \(arguments.joined(separator: " ")) did not say where it listens")
    }
    output = ends[0]
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

  /// `listening on http://127.0.0.1:8080 …`; also a URL by itself, with or without a path.
  package static func address(in line: String) -> SocketAddress? {
    let bytes = Array(line.utf8)
    guard let place = (0..<bytes.count).first(where: { bytes[$0...].starts(with: "://".utf8) }) else { return nil }
    let authority = bytes[(place + 3)...].prefix { $0 != 0x20 && $0 != UInt8(ascii: "/") }
    guard let colon = authority.lastIndex(of: UInt8(ascii: ":")),
      let port = UInt16(String(decoding: authority[(colon + 1)...], as: UTF8.self))
    else { return nil }
    return SocketAddress(host: String(decoding: authority[..<colon], as: UTF8.self), port: port)
  }

  package var facts: ProcessReadings { ProcessReadings(pid: pid) }

  /// Ends it in order and waits for that.
  package func stop() { end(SIGTERM) }

  /// Ends it as if it had crashed, at whatever it is doing.
  package func crash() { end(SIGKILL) }

  private func end(_ signal: Int32) {
    kill(pid, signal)
    var status: Int32 = 0
    waitpid(pid, &status, 0)
    close(output)
  }
}

/// Seconds of CPU.
package struct ProcessorTime: Sendable {
  package var user: Double
  package var system: Double
  /// Both together, exactly.
  package var exact: Double?

  package var all: Double { exact ?? user + system }

  /// Tells user from system by samples.
  mutating func split(_ sampler: ModeSampler) {
    let second = Double(ModeSampler.frequency)
    (user, system) = (Double(sampler.user) / second, Double(sampler.kernel) / second)
  }

  /// What was used since then. User and system share what is exact as their ticks or samples do.
  func since(_ earlier: ProcessorTime) -> ProcessorTime {
    var time = ProcessorTime(user: user - earlier.user, system: system - earlier.system)
    guard let exact, let before = earlier.exact else { return time }
    time.exact = exact - before
    let ticks = time.user + time.system
    if ticks > 0 { (time.user, time.system) = (time.all * time.user / ticks, time.all * time.system / ticks) }
    return time
  }
}

/// What the kernel knows of a process of this machine.
package struct ProcessReadings: Sendable {
  package let pid: pid_t

  package init(pid: pid_t) { self.pid = pid }

  /// What the process has used so far; nil where it is gone. User and system are counted in hundredths of a second, all
  /// threads' time together to the nanosecond, where the kernel keeps it.
  package var cpu: ProcessorTime? {
    guard let text = contents("stat") else { return nil }
    // The second field, the name, may hold spaces; what follows it does not.
    let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
    guard fields.count > 13, let user = Double(fields[12]), let system = Double(fields[13]) else { return nil }
    let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
    return ProcessorTime(user: user / ticks, system: system / ticks, exact: threadSeconds)
  }

  /// Of the threads that are there: the hub's last as long as it does.
  private var threadSeconds: Double? {
    guard let stream = opendir("/proc/\(pid)/task") else { return nil }
    defer { _ = closedir(stream) }
    var nanoseconds = 0.0
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name.hasPrefix(".") { continue }
      guard let first = contents("task/\(name)/schedstat")?.split(separator: " ").first, let time = Double(first)
      else { return nil }
      nanoseconds += time
    }
    return nanoseconds / 1e9
  }

  package var residentBytes: Int? {
    guard let fields = contents("statm")?.split(separator: " "), fields.count > 1, let pages = Int(fields[1]) else {
      return nil
    }
    return pages * sysconf(Int32(_SC_PAGESIZE))
  }

  /// Resident bytes, and those of them that are the process's own: the rest are pages of files, which all who have them open
  /// share and the kernel can drop.
  var memory: (resident: Int, own: Int)? {
    guard let text = contents("smaps_rollup") else { return nil }
    var kibibytes: [Substring: Int] = [:]
    for line in text.split(separator: "\n") {
      let fields = line.split(separator: " ")
      if fields.count == 3, let value = Int(fields[1]) { kibibytes[fields[0]] = value }
    }
    guard let resident = kibibytes["Rss:"], let anonymous = kibibytes["Anonymous:"] else { return nil }
    return (resident << 10, anonymous << 10)
  }

  private func contents(_ name: String) -> String? {
    do throws(SystemError) {
      return String(decoding: try readFile("/proc/\(pid)/\(name)"), as: UTF8.self)
    } catch {
      return nil
    }
  }
}
