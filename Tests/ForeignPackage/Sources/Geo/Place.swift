/// Somebody else's module has the name of a folder of the hub, and types with names of the hub's.
public struct Coordinate {
  public var name: String
  public init(name: String) { self.name = name }
}
