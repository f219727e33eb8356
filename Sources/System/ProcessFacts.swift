// What the kernel knows of this process, for metrics, and the limit of open files.

import CHubLinux
import Glibc

/// Facts about the running process.
public enum ProcessFacts {
  /// Resident memory in bytes, from /proc/self/statm (proc(5)); nil where /proc is missing.
  public static func residentBytes() -> Int? {
    guard let pages = numbers(of: "/proc/self/statm"), pages.count > 1 else { return nil }
    return pages[1] * sysconf(Int32(_SC_PAGESIZE))
  }

  /// Processor time of all threads, user and system, in nanoseconds.
  public static func cpuTimeNanoseconds() -> Int64 { ClockReading.nanoseconds(of: CLOCK_PROCESS_CPUTIME_ID) }

  /// Processor time of the calling thread, user and system, in nanoseconds.
  public static func threadCPUTimeNanoseconds() -> Int64 { ClockReading.nanoseconds(of: CLOCK_THREAD_CPUTIME_ID) }

  /// The current limit of open descriptors, and the one that this process may raise it to.
  public static func openFileLimit() throws(SystemError) -> (current: Int, maximum: Int) {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
      throw SystemError("getrlimit")
    }
    return (Int(clamping: limit.rlim_cur), Int(clamping: limit.rlim_max))
  }

  /// The current limit of open descriptors; 0 where the kernel does not report it.
  public static var currentFileLimit: Int {
    do throws(SystemError) { return try openFileLimit().current } catch { return 0 }
  }

  /// Open descriptors of this process; nil where the kernel gives no count (before Linux 6.2, proc_pid_fd(5)).
  public static func openDescriptors() -> Int? {
    var facts = stat()
    guard unsafe stat("/proc/self/fd", &facts) == 0, facts.st_size > 0 else { return nil }
    return Int(facts.st_size)
  }

  /// Raises the limit of open files to `wanted`, or as far as allowed; never lowers it. Gives the limit then.
  public static func raiseOpenFileLimit(to wanted: Int = .max) throws(SystemError) -> Int {
    let (current, maximum) = try openFileLimit()
    let target = min(wanted, maximum)
    if target <= current { return current }
    try setOpenFileLimit(target, maximum: maximum)
    return target
  }

  /// Grows the table of open files to `count` entries at once.
  ///
  /// The kernel doubles it when it is full, and where threads share it, the open call waits for `synchronize_rcu`
  /// (fs/file.c): 16 ms measured for the thousandth connection, in which its loop served nobody. Before other threads
  /// start it takes microseconds. Costs 8 bytes of the kernel's per file.
  public static func makeRoomForOpenFiles(_ count: Int) throws(SystemError) {
    let file = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw SystemError("open") }
    defer { _ = close(file) }
    let last = fcntl(file, F_DUPFD_CLOEXEC, Int32(clamping: count - 1))
    guard last >= 0 else { throw SystemError("fcntl") }
    _ = close(last)
  }

  static func setOpenFileLimit(_ current: Int, maximum: Int) throws(SystemError) {
    var limit = rlimit(rlim_cur: rlim_t(current), rlim_max: rlim_t(maximum))
    guard unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
      throw SystemError("setrlimit")
    }
  }

  /// Has the allocator return large blocks to the system when they are freed, from now on.
  ///
  /// glibc lets a freed block of up to 32 MiB raise the size from which blocks get pages of their own (mallopt(3),
  /// M_MMAP_THRESHOLD): after some hundred incomplete messages a hub of 17 MiB kept 16 MiB more; with this, 2. It costs
  /// a system call and fresh pages for each block over 64 KiB; ingesting fixes allocates none.
  public static func giveMemoryBack() {
    // It is refused by other allocators only.
    _ = mallopt(M_MMAP_THRESHOLD, 64 * 1024)
    _ = mallopt(M_TRIM_THRESHOLD, 128 * 1024)
  }

  /// Has the allocator return its free memory now, after work that needed much of it.
  public static func trimMemory() { _ = malloc_trim(0) }

  /// Unmaps the pages of code that starting has touched and running may never touch again, where /proc is mounted.
  ///
  /// A fault maps 64 KiB around it, so that starting leaves most of the executable resident: 9.8 of a hub's 16 MiB.
  /// What is needed again is mapped again from the page cache, a microsecond a fault. Only code, to which nobody has
  /// written: a page with relocations would be lost, as a debugger's breakpoints are.
  public static func releaseStartingCode() {
    guard let maps = contents(of: "/proc/self/maps") else { return }
    for line in maps.split(separator: UInt8(ascii: "\n")) {
      let columns = String(decoding: line, as: UTF8.self).split(separator: " ", omittingEmptySubsequences: true)
      guard columns.count == 6, columns[1] == "r-xp", columns[5].hasPrefix("/") else { continue }
      let bounds = columns[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
      guard bounds.count == 2, let start = unsafe UnsafeMutableRawPointer(bitPattern: bounds[0]) else { continue }
      _ = unsafe madvise(start, Int(bounds[1] - bounds[0]), MADV_DONTNEED)
    }
  }

  /// The variables of the environment. To be read before another thread may change them (environ(7)).
  public static var environment: [String: String] {
    var variables: [String: String] = [:]
    guard var next = unsafe hub_environment() else { return variables }
    while let entry = unsafe next.pointee {
      let parts = unsafe String(cString: entry).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      if parts.count == 2 { variables[String(parts[0])] = String(parts[1]) }
      unsafe next += 1
    }
    return variables
  }

  /// Processors that this process may use at a time: those of its affinity (taskset, systemd's CPUAffinity), and no
  /// more than the quotas of its control groups leave (containers' CPU limits, systemd's CPUQuota), rounded up.
  public static var processors: Int {
    var set = cpu_set_t()
    let size = MemoryLayout<cpu_set_t>.size
    let isKnown = unsafe sched_getaffinity(0, size, &set) == 0
    let allowed = unsafe withUnsafeBytes(of: &set) { unsafe $0.reduce(0) { $0 + $1.nonzeroBitCount } }
    let path = contents(of: "/proc/self/cgroup").flatMap { controlGroup(in: String(decoding: $0, as: UTF8.self)) }
    let quota = path.flatMap { processorQuota(of: $0) { contents(of: "/sys/fs/cgroup\($0)/cpu.max") } }
    return max(1, min(isKnown ? allowed : Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))), quota ?? .max))
  }

  /// The path of the group in cgroup v2 from /proc/self/cgroup (cgroups(7)): its line `0::PATH`.
  package static func controlGroup(in text: String) -> String? {
    text.split(separator: "\n").first { $0.hasPrefix("0::/") }.map { String($0.dropFirst(3)) }
  }

  /// The least quota of a group and of those that it is in, in processors, rounded up; nil without one.
  ///
  /// `read` gives a group's `cpu.max`: microseconds in each period, or `max`, and the period.
  package static func processorQuota(of group: String, read: (String) -> [UInt8]?) -> Int? {
    var names = group.split(separator: "/")
    var least: Int?
    while true {
      let numbers = read(names.map { "/\($0)" }.joined())
        .map { String(decoding: $0, as: UTF8.self).split(whereSeparator: \.isWhitespace).compactMap { Int($0) } }
      if let numbers, numbers.count == 2, numbers[0] > 0, numbers[1] > 0 {
        least = min(least ?? .max, (numbers[0] - 1) / numbers[1] + 1)
      }
      if names.popLast() == nil { return least }
    }
  }

  /// The decimal numbers in a file.
  private static func numbers(of path: String) -> [Int]? {
    guard let text = contents(of: path) else { return nil }
    return text.split(whereSeparator: { $0 < 48 || $0 > 57 }).map { digits in
      digits.reduce(0) { $0 &* 10 &+ Int($1 - 48) }
    }
  }

  /// All bytes of a file; nil when it cannot be opened or read.
  package static func contents(of path: String) -> [UInt8]? {
    do throws(SystemError) { return try readFile(path) } catch { return nil }
  }
}
