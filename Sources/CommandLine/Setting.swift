// One row of a table of settings: from it come the option, the line of a file, the variable of the environment, the
// help, the check and the tables in the documents. Its default is what `Root()` has.

/// What `Arguments` and the help need to know of an option: `--name VALUE`, or `--name` alone where there is no
/// placeholder.
public struct Option: Sendable {
  public var name: String
  /// The placeholder of the value in the help; nil for a switch.
  public var placeholder: String?
  public var help: String
  /// Whether it may be given several times.
  public var repeats: Bool

  public init(_ name: String, _ placeholder: String? = nil, _ help: String, repeats: Bool = false) {
    self.repeats = repeats
    self.name = name
    self.placeholder = placeholder
    self.help = help
  }
}

/// One setting of a `Root`.
public struct Setting<Root>: Sendable {
  public let name: String
  public let placeholder: String?
  public let help: String
  public let repeats: Bool
  /// The allowed values: as text behind "must be", and as a range.
  public let words: String
  public let range: String
  /// For a limit, what happens beyond it, and the metric that counts this; nil for other settings.
  public let past: String?
  /// Copies the value from another root, for a setting that may change at run time; nil for all others.
  public private(set) var copy: (@Sendable (inout Root, Root) -> Void)?
  /// Whether it may change at run time.
  public var isLive: Bool { copy != nil }
  /// Sets the value of a root from its text; false where the text is invalid.
  public let read: @Sendable (inout Root, String) -> Bool
  /// The value as it would be given, or words for what applies without one; nil where nothing is to be shown.
  public let write: @Sendable (Root) -> String?

  /// A setting with its own reader, which may be given several times if it `repeats`.
  public init(
    _ name: String, _ placeholder: String?, _ help: String, mustBe words: String, range: String? = nil,
    repeats: Bool = false, past: String? = nil, write: @escaping @Sendable (Root) -> String? = { _ in nil },
    read: @escaping @Sendable (inout Root, String) -> Bool
  ) {
    self.name = name
    self.placeholder = placeholder
    self.help = help
    self.repeats = repeats
    self.words = words
    self.range = range ?? words
    self.past = past
    self.read = read
    self.write = write
  }

  /// `otherwise` describes in the help what applies by default, instead of the default's value.
  public init<Value>(
    _ name: String, _ path: any WritableKeyPath<Root, Value> & Sendable, _ kind: ValueKind<Value>,
    _ placeholder: String?,
    _ help: String, otherwise: String? = nil, past: String? = nil
  ) {
    self.init(
      name, placeholder, help, mustBe: kind.words, range: kind.range, past: past,
      write: { otherwise ?? kind.write($0[keyPath: path]) },
      read: { root, text in kind.read(text).map { root[keyPath: path] = $0 } != nil })
  }

  /// A setting that has no value unless it is given.
  public init<Value>(
    _ name: String, _ path: any WritableKeyPath<Root, Value?> & Sendable, _ kind: ValueKind<Value>,
    _ placeholder: String,
    _ help: String, otherwise: String? = nil, past: String? = nil
  ) {
    self.init(
      name, placeholder, help, mustBe: kind.words, range: kind.range, past: past,
      write: { $0[keyPath: path].map(kind.write) ?? otherwise },
      read: { root, text in kind.read(text).map { root[keyPath: path] = $0 } != nil })
  }

  /// A switch.
  public init(_ name: String, _ path: any WritableKeyPath<Root, Bool> & Sendable, _ help: String) {
    self.init(
      name, nil, help, mustBe: ValueKind.flag.words,
      read: { root, text in ValueKind.flag.read(text).map { root[keyPath: path] = $0 } != nil })
  }

  /// This setting, of something that a `Root` is a part of.
  public func part<Whole>(of path: any WritableKeyPath<Whole, Root> & Sendable) -> Setting<Whole> {
    var setting = Setting<Whole>(
      name, placeholder, help, mustBe: words, range: range, repeats: repeats, past: past,
      write: { write($0[keyPath: path]) }, read: { read(&$0[keyPath: path], $1) })
    if let copy { setting.copy = { whole, other in copy(&whole[keyPath: path], other[keyPath: path]) } }
    return setting
  }

  /// This setting, as one that may change at run time. `path` is where its value is; for a setting with several paths
  /// this is called once for each.
  public func live<Value>(_ path: any WritableKeyPath<Root, Value> & Sendable) -> Setting {
    var setting = self
    setting.copy = { [copy] root, other in
      copy?(&root, other)
      root[keyPath: path] = other[keyPath: path]
    }
    return setting
  }

  /// The option, whose help ends with the default of a `Root`.
  public func option(_ root: Root) -> Option {
    Option(name, placeholder, help + (write(root).map { " (\($0))" } ?? ""), repeats: repeats)
  }
}

extension Arguments {
  /// Sets the given values of `root`; throws the faults of all these settings as one error.
  public func apply<Root>(_ settings: [Setting<Root>], to root: inout Root) throws(CommandError) {
    var faults = Faults()
    apply(settings, to: &root, &faults)
    try faults.check()
  }

  /// Sets the given values of `root`, and collects invalid ones in `faults`.
  public mutating func collect<Root>(_ settings: [Setting<Root>], into root: inout Root) {
    apply(settings, to: &root, &faults)
  }

  private func apply<Root>(_ settings: [Setting<Root>], to root: inout Root, _ faults: inout Faults) {
    for setting in settings {
      for value in values(setting.name) where !setting.read(&root, value.text) {
        faults.add(.usage("\(value.origin) must be \(setting.words), not \(value.text)"))
      }
    }
  }
}
