/**
 * `readBanMs(c)`: returns the milliseconds until the client's ban ends; 0 if there is no ban.
 *
 * The key of a ban expires when the ban ends, so Redis ends every ban, with both clocks. If bans
 * become longer, one command reads the ban and the strikes. The value of such a ban is the time of
 * its end, which saves PTTL. If a ban began when the rule had one length, its value is 1, and the
 * script reads the remaining time with PTTL.
 */
export const LUA_READ_BAN = `local function readBanMs(c)
  if c.banMs == 0 then
    return 0
  end
  if c.lengthsMs then
    local stored = redis.call('MGET', c.banKey, c.strikesKey)
    c.strikes = tonumber(stored[2]) or 0
    if not stored[1] then
      return 0
    end
    local leftMs = (tonumber(stored[1]) or 0) - now
    if leftMs > 0 then
      return leftMs
    end
  end
  return math.max(0, redis.call('PTTL', c.banKey))
end

`;

/**
 * `newBan(c)`: returns the length of the ban that begins now, and a function that stores it. The
 * counter is not banned, and `readBanMs` has read it. If bans become longer, the ban adds one
 * strike.
 */
export const LUA_NEW_BAN = `local function newBan(c)
  if not c.lengthsMs then
    return c.banMs, function() redis.call('SET', c.banKey, 1, 'PX', digits(c.banMs)) end
  end
  local banMs = c.lengthsMs[math.min(c.strikes + 1, #c.lengthsMs)]
  return banMs, function()
    redis.call('SET', c.banKey, digits(now + banMs), 'PX', digits(banMs))
    redis.call('SET', c.strikesKey, digits(c.strikes + 1), 'PX', digits(banMs + c.forgetAfterMs))
  end
end

`;
