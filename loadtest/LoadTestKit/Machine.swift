// On what a figure was measured.
import Glibc
import HubCommandLine
import HubSystem

package enum Machine {
  /// Cores, processor, system, load, and when.
  package static func description() -> String {
    var name = utsname()
    uname(&name)
    let model = (line("/proc/cpuinfo", "model name") ?? "unknown processor")
    let load = text("/proc/loadavg")?.split(separator: " ").first ?? "?"
    // The machine's, also where this process may use one of them (pinned.sh).
    let cores = sysconf(Int32(_SC_NPROCESSORS_ONLN))
    return "\(cores) × \(model), \(cString(&name.sysname)) \(cString(&name.release)), load \(load), \(now())"
  }

  /// 2026-11-22 02:04 UTC
  private static func now() -> String {
    var seconds = time(nil)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    let two = { (value: Int32) in (value < 10 ? "0" : "") + "\(value)" }
    return
      "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday)) \(two(parts.tm_hour)):\(two(parts.tm_min)) UTC"
  }

  /// The folders in which scenarios are looked for: here, and beside the sources that this program was built from.
  package static func scenarioFolders() -> [String] {
    var folders = ["loadtest/scenarios"]
    var parts = executablePath().split(separator: "/")
    while !parts.isEmpty {
      parts.removeLast()
      let folder = "/" + parts.joined(separator: "/") + "/loadtest/scenarios"
      if access(folder, R_OK) == 0 { folders.append(folder) }
    }
    return folders
  }

  /// The file of this program.
  package static func executablePath() -> String {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : CommandLine.arguments[0]
  }

  /// The hub that was built beside this program.
  package static func hubBesides() -> String {
    executablePath().split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
      + "/locationhub"
  }

  private static func cString<T>(_ field: inout T) -> String {
    withUnsafeBytes(of: &field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }

  private static func line(_ path: String, _ name: String) -> String? {
    guard let line = text(path)?.split(separator: "\n").first(where: { $0.hasPrefix(name) }),
      let colon = line.firstIndex(of: ":")
    else { return nil }
    return String(line[line.index(after: colon)...].trimmed)
  }

  private static func text(_ path: String) -> String? {
    do throws(LoadTestError) { return try readText(path) } catch { return nil }
  }
}
