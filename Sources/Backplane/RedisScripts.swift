// The ledger's questions as Lua scripts, each atomic.
//
//     lh:incarnation   the highest incarnation            lh:m:NAME   a member's record, with its lease
//     lh:s:NAME        that member's status, as long
//     lh:members       the names of members               lh:o:KEY    hash: owner, generation
//     lh:w:KEY         the members that wait for an owner, and, as `from:NAME`, those that it was taken from
//
// Numbers are integers below 2⁵³, which Lua's doubles represent exactly.

enum RedisScripts {
  /// The scripts, in the order of `Script`.
  static let all = [incarnation, renew, leave, members, claim, locate, release]

  /// The scripts' indices in `all`.
  enum Script: Int {
    case incarnation, renew, leave, members, claim, locate, release
  }

  private static let incarnation = """
    local n = redis.call('INCR', KEYS[1])
    local clock = tonumber(redis.call('TIME')[1])
    if n < clock then
      n = clock
      redis.call('SET', KEYS[1], string.format('%.0f', n))
    end
    return n
    """

  // KEYS: record, set of names, highest incarnation, status. ARGV: name, incarnation, record, lease in ms, status.
  private static let renew = """
    local mine = tonumber(ARGV[2])
    local record = redis.call('GET', KEYS[1])
    if record then
      local other = tonumber(string.match(record, '^%d+'))
      if other and other > mine then return other end
    end
    redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
    redis.call('SET', KEYS[4], ARGV[5], 'PX', ARGV[4])
    redis.call('SADD', KEYS[2], ARGV[1])
    if tonumber(redis.call('GET', KEYS[3]) or '0') < mine then redis.call('SET', KEYS[3], ARGV[2]) end
    return record and 0 or -1
    """

  // KEYS: record, set of names. ARGV: name, incarnation.
  private static let leave = """
    local record = redis.call('GET', KEYS[1])
    if record and string.match(record, '^%d+') == ARGV[2] then
      redis.call('DEL', KEYS[1])
      redis.call('SREM', KEYS[2], ARGV[1])
    end
    return 0
    """

  // KEYS: set of names. ARGV: the prefixes of the keys of a member's record and status.
  private static let members = """
    local found = {}
    for _, name in ipairs(redis.call('SMEMBERS', KEYS[1])) do
      local record = redis.call('GET', ARGV[1] .. name)
      if record then
        found[#found + 1] = name
        found[#found + 1] = record
        found[#found + 1] = redis.call('GET', ARGV[2] .. name) or ''
      else
        redis.call('SREM', KEYS[1], name)
      end
    end
    return found
    """

  // KEYS: owner, waiting members. ARGV: name, known generation, whether it seizes, the keys' lifetime in ms, the
  // attempt's number. The hash has the number of each member's last seizure, so that a repeated one is not carried out
  // again. A hub that seizes a key may die before it has notified the owner before, and so may the next: so every claim
  // names former owners until they show that they know, by a claim or a release. Waiting members are forgotten when the
  // owner claims with the current generation, which came with their names. What takes memory is written first: an
  // engine without any left refuses a script only at its first write.
  private static let claim = """
    local now = redis.call('HMGET', KEYS[1], 'owner', 'generation', 'seized:' .. ARGV[1])
    local owner, generation = now[1], tonumber(now[2] or '0')
    local known, seizes = tonumber(ARGV[2]), ARGV[3] == '1'
    local isDone = seizes and ARGV[5] ~= '0' and now[3] == ARGV[5]
    if owner and owner ~= ARGV[1] and (isDone or not seizes and generation >= known) then
      redis.call('SREM', KEYS[2], 'from:' .. ARGV[1])
      return {0, owner, generation}
    end
    local isKnown = known >= generation
    generation = math.max(generation, known)
    if seizes and not isDone then
      if ARGV[5] ~= '0' then redis.call('HSET', KEYS[1], 'seized:' .. ARGV[1], ARGV[5]) end
      local time = redis.call('TIME')
      generation = math.max(generation + 1, time[1] * 1000 + math.floor(time[2] / 1000))
    end
    redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'generation', string.format('%.0f', generation))
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
    redis.call('SREM', KEYS[2], 'from:' .. ARGV[1])
    local answer = {1, owner or '', generation}
    local isSettled = not owner or owner == ARGV[1] and isKnown
    for _, name in ipairs(redis.call('SMEMBERS', KEYS[2])) do
      local before = string.match(name, '^from:(.*)')
      answer[#answer + 1] = before or name
      if isSettled and not before then redis.call('SREM', KEYS[2], name) end
    end
    if owner and owner ~= ARGV[1] then
      redis.call('SADD', KEYS[2], 'from:' .. owner)
      redis.call('PEXPIRE', KEYS[2], ARGV[4])
    end
    return answer
    """

  // KEYS: owner, waiting members. ARGV: name, how long it waits in ms.
  private static let locate = """
    local owner = redis.call('HGET', KEYS[1], 'owner')
    if owner then return owner end
    redis.call('SADD', KEYS[2], ARGV[1])
    if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
    return false
    """

  // KEYS: owner, waiting members. ARGV: name.
  private static let release = """
    redis.call('SREM', KEYS[2], 'from:' .. ARGV[1])
    if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then redis.call('DEL', KEYS[1]) end
    return 0
    """
}
