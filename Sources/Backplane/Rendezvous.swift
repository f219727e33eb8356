// Assigns keys to names (nodes of the bus, ledgers, the hub that counts trips), alike in all that know the same names.
import HubBytes

/// Rendezvous hashing (Thaler, Ravishankar: A Name-Based Mapping Scheme for Rendezvous, 1996): all who know the same
/// names agree on their order for each key, and when a name is removed, only its keys move.
public enum Rendezvous {
  /// The indices of `names`, the best for `key` first.
  public static func order(_ names: [String], for key: String) -> [Int] {
    let keyHash = hash(key.utf8, seed: 0)
    let scores = names.map { hash($0.utf8, seed: keyHash) }
    return names.indices.sorted { (scores[$0], names[$0]) > (scores[$1], names[$1]) }
  }

  /// A number that is the same for all who know the same names, in any order; 0 for one name.
  public static func digest(_ names: [String]) -> UInt64 {
    names.count == 1 ? 0 : names.sorted().reduce(1) { hash($1.utf8, seed: $0) }
  }

  /// FNV-1a with a final mix. The result must be the same in every process of every version.
  private static func hash(_ bytes: String.UTF8View, seed: UInt64) -> UInt64 {
    Mix64.mix(bytes.reduce(0xCBF2_9CE4_8422_2325 ^ seed) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 })
  }
}
