/** `costIn(c, window)`: the cost, or 0 if the count belongs to another window than the charge. */
const COST_IN = `local chargedIn

local function costIn(c, window)
  return (not chargedIn or chargedIn == window) and c.cost or 0
end

`;

/**
 * `addFixed(c)`: adds the cost to a counter that does not roll over, and returns its count. The
 * field saturates at 0 and at 2^63 - 1. A final step lowers a count above 2^53 - 1 to this number.
 */
const ADD_FIXED = `local function addFixed(c)
  local results = redis.call('BITFIELD', c.key, 'GET', 'u63', 0, 'OVERFLOW', 'SAT',
    'INCRBY', 'u63', 0, digits(costIn(c, c.window)))
  local before, after = results[1], results[2]
  local count = math.min(MAX_COUNT, after)
  undoSteps[#undoSteps + 1] = function()
    if before == 0 then
      redis.call('DEL', c.key)
    else
      redis.call('BITFIELD', c.key, 'SET', 'u63', 0, digits(before))
    end
  end
  finalSteps[#finalSteps + 1] = function()
    if after > MAX_COUNT then
      redis.call('BITFIELD', c.key, 'SET', 'u63', 0, digits(MAX_COUNT))
    end
    if count == 0 then
      redis.call('DEL', c.key)
    elseif before == 0 then
      redis.call('PEXPIRE', c.key, digits(c.resetMs + EXPIRY_GRACE_MS))
    end
  end
  return count
end

`;

/** `addRolling(c)`: does the same as `addFixed(c)` for a counter that rolls over. */
const ADD_ROLLING = `local function addRolling(c)
  local before, window = readCount(c)
  local count = math.min(MAX_COUNT, math.max(0, before + costIn(c, window)))
  if count ~= before then
    finalSteps[#finalSteps + 1] = function() writeRolling(c, count) end
  end
  return count
end

`;

/**
 * `adjust(counters)`: adds the cost of each counter. The final step of one counter must not hide its
 * count from the next one, so a counter occurs only once.
 */
const ADJUST = `local function adjust(counters)
  reply[#reply + 1] = 1
  for _, requested in ipairs(counters) do
    chargedIn = refuseFault(requested).chargedIn
    local c, countOffset = chooseCounter(requested)
    local count = c.rollsOver and addRolling(c) or addFixed(c)
    reply[#reply + 1] = math.min(MAX_COUNT, count + countOffset)
    reply[#reply + 1] = c.resetMs
    reply[#reply + 1] = readBanMs(requested)
  end
  commit()
end

`;

/**
 * Lua functions that add costs without checking the quota left. A negative cost lowers the count. `adjust`
 * replies 1, and for each counter its count, the ms until its window ends, and the ms until its ban ends. If a
 * counter has `chargedIn`, the number of a window, its cost is added only if the count belongs to this window.
 */
export const LUA_ADJUST = `${COST_IN}${ADD_FIXED}${ADD_ROLLING}${ADJUST}`;

/**
 * `remove(counters)`: removes the counts, unless a counter has `keepsCount`, and the bans and strikes. Replies 1.
 * Upstash bills a DEL of many keys as one command. Lua passes at most some thousand values to a
 * function, so each DEL has at most a thousand keys.
 */
export const LUA_REMOVE = `local function remove(counters)
  local keys = {}
  for _, c in ipairs(counters) do
    if not c.keepsCount then
      keys[#keys + 1] = refuseFault(c).key
    end
    keys[#keys + 1] = c.banKey
    keys[#keys + 1] = c.strikesKey
  end
  for at = 1, #keys, 1000 do
    redis.call('DEL', unpack(keys, at, math.min(at + 999, #keys)))
  end
  reply[#reply + 1] = 1
end

`;
