// `serve --check`: the settings of a start, without one. It binds and writes nothing and shows no secrets: settings
// name files, whose content is not printed.
import HubCommandLine
import HubSystem

/// Prints each setting with its value and source, or throws all faults.
func checkSettings(_ arguments: Arguments) throws(CommandError) -> ExitCode {
  StandardStream.output.write(try readSettings(arguments).table + "these settings are good\n")
  return .ok
}

/// The settings of a start. Any fault is one of usage, also that of an unreadable file: another start, as service
/// managers try where one has failed, would fail again.
func readSettings(_ arguments: Arguments) throws(CommandError) -> ServeOptions {
  do throws(CommandError) { return try ServeOptions(arguments) } catch { throw .usage("\(error)") }
}

extension ServeOptions {
  /// A line for each setting, and one for each value of those that are given several times.
  var table: String {
    let plain = ServeOptions()
    let rows = ServeOptions.settings.flatMap { setting -> [(String, String, String)] in
      let values = given?.values(setting.name) ?? []
      if values.isEmpty { return [(setting.name, setting.write(plain) ?? "–", "default")] }
      return values.map { value in (setting.name, value.text, value.origin) }
    }
    return rows.map { name, value, source in
      name + spaces(28 - name.count) + value + spaces(32 - value.count) + source + "\n"
    }.joined()
  }
}

private func spaces(_ count: Int) -> String { String(repeating: " ", count: max(1, count)) }
