// The hub under test: a process of its own that this program starts, on cores of its own if asked for, or one
// that runs already. One that was started here never outlives this program, whatever ends that, and is waited for in
// bounds.
import CHubLoadTest
import Glibc
import HubCommandLine
import HubSystem
package import HubTransport

package struct HubProcess {
  package let pid: Int32
  package let address: SocketAddress
  /// Where its words come out: open as long as it runs, so that it can say more than one.
  private let output: Int32
  private let interruption: Interruption

  /// How long it may take to say where it listens.
  package static let startPatience = 60.0

  /// Starts `locationhub serve` and waits for its line, so many seconds. `cpus` as for taskset, or nil; `wrapper` is
  /// what it is run by, a program and its first arguments. It ends with the thread that calls this.
  package init(
    executable: String, arguments: [String], cpus: String? = nil, wrapper: [String] = [], quiet: Bool = false,
    within seconds: Double = HubProcess.startPatience, interruption: Interruption = .process
  ) throws(LoadTestError) {
    var ends: [Int32] = [0, 0]
    guard pipe2(&ends, O_CLOEXEC) == 0 else { throw .failed("pipe: \(SystemError.text(errno))") }
    let words = (cpus.map { ["taskset", "-c", $0] } ?? []) + wrapper + [executable] + arguments
    var argv: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { for word in argv { free(word) } }
    let pid = hub_start_bound(&argv, ends[1], quiet ? 1 : 0)
    let number = errno
    close(ends[1])
    guard pid > 0 else {
      close(ends[0])
      throw .failed("cannot start \(words[0]): \(SystemError.text(number))")
    }
    let limit = ClockReading.read().uptimeNanoseconds + Int64(seconds * 1e9)
    guard let line = HubProcess.readLine(ends[0], until: limit, interruption),
      let address = HubProcess.address(in: line)
    else {
      let isLate = ClockReading.read().uptimeNanoseconds >= limit
      kill(pid, SIGKILL)
      waitpid(pid, nil, 0)
      close(ends[0])
      interruption.noteStopped()
      if let signal = interruption.signal { throw .failed(Interruption.text(signal)) }
      throw .failed(
        "\(executable) \(arguments.joined(separator: " ")) did not say where it listens"
          + (isLate ? " within \(decimals(seconds, seconds < 1 ? 1 : 0)) s" : ""))
    }
    output = ends[0]
    self.pid = pid
    self.address = address
    self.interruption = interruption
  }

  /// The path of a program, found as execvp(3) would; throws where there is none: before a series, and not within it.
  @discardableResult
  package static func check(executable: String) throws(LoadTestError) -> String {
    var paths = [executable]
    if !executable.contains("/") {
      let folders = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
      paths = folders.split(separator: ":").map { "\($0)/\(executable)" }
    }
    for path in paths {
      var status = stat()
      if access(path, X_OK) == 0, stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG { return path }
    }
    throw .usage("there is no program \(executable) that can be started")
  }

  /// Nil where it ends before its line does, its time is over (uptime, ns), or this program is to end.
  private static func readLine(_ descriptor: Int32, until limit: Int64, _ interruption: Interruption) -> String? {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while interruption.signal == nil, ClockReading.read().uptimeNanoseconds < limit {
      if poll(&wanted, 1, 50) <= 0 { continue }
      guard read(descriptor, &byte, 1) == 1 else { return nil }
      if byte == 10 { return String(decoding: line, as: UTF8.self) }
      line.append(byte)
    }
    return nil
  }

  /// `listening on http://127.0.0.1:8080 …`; also a URL by itself, with or without a path.
  package static func address(in line: String) -> SocketAddress? {
    let bytes = Array(line.utf8)
    guard let scheme = (0..<bytes.count).first(where: { bytes[$0...].starts(with: "://".utf8) }) else { return nil }
    let authority = bytes[(scheme + 3)...].prefix { $0 != 0x20 && $0 != UInt8(ascii: "/") }
    guard let colon = authority.lastIndex(of: UInt8(ascii: ":")),
      let port = UInt16(String(decoding: authority[(colon + 1)...], as: UTF8.self))
    else { return nil }
    return SocketAddress(host: String(decoding: authority[..<colon], as: UTF8.self), port: port)
  }

  package var facts: ProcessReadings { ProcessReadings(pid: pid) }

  /// How it ended; nil while it runs.
  package var ending: ProcessEnding? {
    var value: Int32 = 0
    switch hub_peek_end(pid, &value) {
    case 0: return nil
    case 1: return .code(value)
    case _: return .signal(value)
    }
  }

  /// How long it may take to end when it is asked to.
  package static let patience = 10.0

  /// Ends it in order and waits for that, so many seconds. Gives a message for a hub that had to be killed, or that
  /// ended by itself or otherwise than with exit code 0.
  @discardableResult
  package func stop(within seconds: Double = HubProcess.patience) -> String? { end(SIGTERM, within: seconds) }

  /// Ends it as if it had crashed, at whatever it is doing.
  package func crash() { _ = end(SIGKILL, within: HubProcess.patience) }

  private func end(_ signal: Int32, within seconds: Double) -> String? {
    let early = ending
    kill(pid, signal)
    let limit = ClockReading.read().uptimeNanoseconds + Int64(seconds * 1e9)
    while ending == nil, ClockReading.read().uptimeNanoseconds < limit { pause(microseconds: 1000) }
    let how = ending
    let isLate = how == nil
    // A stalled hub (SIGSTOP) dies of this, too.
    if isLate { kill(pid, SIGKILL) }
    while waitpid(pid, nil, 0) < 0, errno == EINTR {}
    close(output)
    interruption.noteStopped()
    if let early { return "the hub ended \(early) before it was asked to" }
    guard let how else {
      return "the hub did not end within \(decimals(seconds, seconds < 1 ? 1 : 0)) s of SIGTERM, and was killed"
    }
    return how == .code(0) ? nil : "the hub ended \(how) when it was asked to by SIGTERM"
  }
}

/// How a process ended.
package enum ProcessEnding: Sendable, Equatable, CustomStringConvertible {
  case code(Int32)
  case signal(Int32)

  package var description: String {
    switch self {
    case .code(let code): "with exit code \(code)"
    case .signal(let signal): "by signal \(signal)"
    }
  }
}

/// Seconds of CPU.
package struct ProcessorTime: Sendable {
  package var user: Double
  package var system: Double
  /// User and system time together, exactly; nil where only their parts are known.
  package var exact: Double?

  package var all: Double { exact ?? user + system }

  /// Distinguishes user from system time by samples.
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
  package let pid: Int32

  package init(pid: Int32) { self.pid = pid }

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

  /// Resident bytes, and those of them that are the process's own: the rest are pages of files, which all who have them
  /// open share and the kernel can drop.
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

  /// Whether there is such a process, and it has not ended: one for which nobody has waited is a zombie (proc(5),
  /// "state").
  package var isThere: Bool {
    guard let text = contents("stat"), let name = text.lastIndex(of: ")") else { return false }
    let state = text[text.index(after: name)...].drop { $0 == " " }.first
    return state != "Z" && state != "X"
  }

  private func contents(_ name: String) -> String? {
    do throws(SystemError) {
      return String(decoding: try readFile("/proc/\(pid)/\(name)"), as: UTF8.self)
    } catch {
      return nil
    }
  }
}
