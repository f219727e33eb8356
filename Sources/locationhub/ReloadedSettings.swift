// SIGHUP and the settings file: applies what can change while the hub runs, and logs what can't.
//
// A file with any fault changes nothing: the hub continues with its settings, and logs why. Values of the command line
// and the environment still win over the file.
import HubCommandLine
import HubGateway
import HubJournal
import HubRuntime

struct ReloadedSettings {
  private let arguments: Arguments
  /// The values of settings that need a restart.
  private let atStart: ServeOptions
  /// The settings as they were read last; of these the live ones are in force.
  private(set) var current: ServeOptions

  init(_ arguments: Arguments, _ options: ServeOptions) {
    self.arguments = arguments
    (atStart, current) = (options, options)
  }

  /// Reads all that a start reads, if there is a settings file.
  mutating func reload(_ server: Server) {
    guard arguments.isGiven("config") || atStart.given?.isGiven("config") == true else { return }
    var changed: [Setting<ServeOptions>] = []
    let isRead = server.reload(.settings) { () throws(CommandError) in
      let new = try ServeOptions(arguments)
      changed = new.changes(since: current).filter(\.isLive)
      if !changed.isEmpty { server.apply { new.copyLive(into: &$0) } }
      current = new
    }
    guard isRead else { return }
    server.log(
      .info, "reloaded", ["changed": changed.isEmpty ? "nothing" : changed.map(\.name).joined(separator: ",")])
    let waiting = current.changes(since: atStart).filter { !$0.isLive }
    if !waiting.isEmpty {
      server.log(.warning, "needs_restart", ["settings": waiting.map(\.name).joined(separator: ",")])
    }
  }
}

extension Server {
  /// Reloads something by `body`; false where that failed, which is counted and logged, and must have changed nothing.
  func reload(_ what: Reloadable, _ body: () throws(CommandError) -> Void) -> Bool {
    do throws(CommandError) { try body() } catch {
      noteReload(what, isSuccessful: false)
      log(.error, "reload_failed", ["what": "\(what)", "reason": "\(error)"])
      return false
    }
    noteReload(what, isSuccessful: true)
    return true
  }
}

extension ServeOptions {
  /// How long the journal keeps history; set here and, where the server has a journal, in its settings.
  var retention: RetentionRule {
    get { journal.retention }
    set {
      journal.retention = newValue
      server.journal?.retention = newValue
    }
  }

  /// Copies the settings that may change while a server runs into its own, each as its row says.
  func copyLive(into running: inout ServerConfiguration) {
    var options = self
    options.server = running
    for setting in ServeOptions.settings { setting.copy?(&options, self) }
    running = options.server
  }

  /// The settings whose values differ from those in `before`, in the order of the table.
  func changes(since before: ServeOptions) -> [Setting<ServeOptions>] {
    ServeOptions.settings.filter { setting in
      (given?.strings(setting.name) ?? []) != (before.given?.strings(setting.name) ?? [])
    }
  }
}
