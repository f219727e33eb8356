// `serve --check`: what a start would take, without one. Nothing is bound, nothing is written, no secret is shown:
// settings name files, and what is in these is not printed.
import HubCommandLine
import HubSystem

/// Prints each setting with its value and where that comes from. All faults end it at once, with the exit code for a
/// wrong use also where a file cannot be read: the same settings would fail again.
func checkSettings(_ arguments: Arguments) throws(CommandError) -> ExitCode {
  let options: ServeOptions
  do throws(CommandError) { options = try ServeOptions(arguments) } catch { throw .usage("\(error)") }
  StandardStream.output.write(options.table + "these settings are good\n")
  return .ok
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
