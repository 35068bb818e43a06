import { EXPIRY_GRACE_MS, MAX_COUNT } from "../engine/fixed-window.ts";

/**
 * Whose clock places the windows: `redis`, one clock for the world, at the price of one command
 * (TIME); or `edge`, the Worker's.
 */
export type Clock = "redis" | "edge";

/**
 * The fixed-window engine as Lua scripts: the twin of engine/fixed-window.ts.
 *
 *   KEYS  one for each counter, all groups in a row; behind it that of its ban, and that of the
 *         counter to choose instead, where there are such. Clock `edge`: as they are stored, so
 *         that every key the script touches is declared. Clock `redis`: without their windows,
 *         because only TIME tells these.
 *   ARGV  the edge's time in ms, or 0; then what each script says below. A counter is ten
 *         integers: limit, window in ms, offset in ms, cost, ceiling, 1 if it rolls over, 1 if it
 *         is only checked, ban in ms, 1 if it never bans, 1 if there is one to choose instead; that
 *         one is two more, limit and ceiling.
 *   Reply integers only.
 *
 * A counter is an unsigned 63-bit field, because BITFIELD can ask and charge in one command, and
 * a command is what Upstash bills. With `room` = 2^63 - 1 - ceiling, adding cost + room overflows
 * just when count + cost > ceiling, and OVERFLOW FAIL then changes nothing. Taking `room` off again
 * leaves count + cost; after a failed first step it would go below zero, since no count comes near
 * to 2^63, and fails as well. INCRBY would need a second command to look first, or to take a denied
 * request's charge back.
 *
 * A counter that rolls over is a string, `W:count`: what it was in the window W when it was last
 * written. Its grants since then are worked out on reading.
 */
function script(clock: Clock, body: string): string {
  // Upstash runs a script under a lock on the whole database unless it says that it needs only
  // the keys it declared.
  const flags = clock === "edge" ? "#!lua flags=allow-key-locking\n" : "";
  return `${flags}${PRELUDE}
${NOW[clock]}
local nextArg, nextKey = 2, 1

local function int(number)
  return string.format('%.0f', number)
end

local function arg()
  nextArg = nextArg + 1
  return tonumber(ARGV[nextArg - 1])
end

local function key(suffix)
  nextKey = nextKey + 1
  return KEYS[nextKey - 1]${clock === "redis" ? " .. suffix" : ""}
end

${COUNTERS}
${body}
return reply
`;
}

const PRELUDE = `
local MAX = ${MAX_COUNT}
local GRACE = ${EXPIRY_GRACE_MS}`;

const NOW: Record<Clock, string> = {
  redis: `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`,
  edge: "local now = tonumber(ARGV[1])",
};

const COUNTERS = `local function readCounter()
  local c = { limit = arg(), length = arg(), offset = arg(), cost = arg(), ceiling = arg() }
  c.rolls, c.checkOnly, c.ban, c.neverBans = arg() == 1, arg() == 1, arg(), arg() == 1
  local hasOther = arg() == 1
  c.window = math.floor((now - c.offset) / c.length)
  c.left = (c.window + 1) * c.length + c.offset - now
  local suffix = c.rolls and '' or ':' .. int(c.window)
  c.key = key(suffix)
  if c.ban > 0 then
    c.banKey = key('')
  end
  if hasOther then
    c.other = { limit = arg(), ceiling = arg(), key = key(suffix), length = c.length, cost = c.cost,
      rolls = c.rolls, checkOnly = c.checkOnly, window = c.window, left = c.left }
  end
  return c
end

-- The quota used, and the window that this is as of.
local function used(c)
  if not c.rolls then
    return redis.call('BITFIELD_RO', c.key, 'GET', 'u63', 0)[1], c.window
  end
  local stored = redis.call('GET', c.key)
  if not stored then
    return 0, c.window
  end
  local at, count = string.match(stored, '^(-?%d+):(%d+)$')
  at, count = tonumber(at), tonumber(count)
  local window = math.max(c.window, at)
  return math.max(0, count - (window - at) * c.limit), window
end

-- Of a counter and the one to choose instead, the one with more room, or with less of it for what
-- is given back; and what its count is to be raised by, to be that of the counter that was asked.
local function roomier(c)
  local other = c.other
  if other then
    local hasMore = other.ceiling - used(other) > c.ceiling - used(c)
    if hasMore == (c.cost >= 0) then
      return other, c.ceiling - other.ceiling
    end
  end
  return c, 0
end

local function keepRolling(c, count, window)
  local windows = 1
  if c.limit > 0 then
    windows = math.max(1, math.ceil(count / c.limit))
  end
  local left = c.left + (window - c.window + windows - 1) * c.length + GRACE
  redis.call('SET', c.key, int(window) .. ':' .. int(count), 'PX', int(math.min(left, MAX)))
end

local function banLeft(c)
  if c.ban == 0 then
    return 0
  end
  return math.max(0, redis.call('PTTL', c.banKey))
end
`;

/**
 * Decides. ARGV: for each group the number of its counters, and these.
 * Reply: the time in ms; then for each group 1 (admitted) or 0, and for each of its counters the
 * count, the ms until its window ends, and the ms that its ban lasts.
 */
export function decideScript(clock: Clock): string {
  return script(
    clock,
    `-- 2^63 - 1 less a number, in digits: Lua's own numbers are exact to 2^53 only.
local function roomAbove(number)
  local high, low = 9223372036 - math.floor(number / 1e9), 854775807 - number % 1e9
  if low < 0 then
    high, low = high - 1, low + 1e9
  end
  return string.format('%.0f%09.0f', high, low)
end

local function take(c)
  if c.checkOnly or c.cost == 0 or c.cost > c.ceiling then
    -- Nothing to charge: BITFIELD would create the key all the same.
    local count = used(c)
    return count + c.cost <= c.ceiling, count
  end
  if c.rolls then
    local count, window = used(c)
    if count + c.cost > c.ceiling then
      return false, count
    end
    return true, count + c.cost, function() keepRolling(c, count + c.cost, window) end
  end
  local steps = redis.call('BITFIELD', c.key, 'OVERFLOW', 'FAIL',
    'INCRBY', 'u63', 0, roomAbove(c.ceiling - c.cost), 'INCRBY', 'u63', 0, '-' .. roomAbove(c.ceiling),
    'GET', 'u63', 0)
  local count = steps[3]
  if not steps[1] then
    return false, count
  end
  if count == c.cost then
    redis.call('PEXPIRE', c.key, int(c.left + GRACE))
  end
  return true, count, nil, function()
    if count == c.cost then
      redis.call('DEL', c.key)
    else
      redis.call('BITFIELD', c.key, 'INCRBY', 'u63', 0, int(-c.cost))
    end
  end
end

local reply = { now }
while nextKey <= #KEYS do
  local verdict = #reply + 1
  reply[verdict] = 1
  local keeps, returns, bans = {}, {}, {}
  for _ = 1, arg() do
    local c = readCounter()
    local ban, count, shift = banLeft(c), 0, 0
    local at = #reply + 1
    if ban > 0 then
      reply[verdict] = 0
      count = used(c)
    else
      local admitted, keep, giveBack, chosen
      chosen, shift = roomier(c)
      admitted, count, keep, giveBack = take(chosen)
      if not admitted then
        reply[verdict] = 0
        if c.ban > 0 and not c.neverBans then
          ban = c.ban
          bans[#bans + 1] = c
        end
      elseif keep then
        keeps[#keeps + 1] = keep
        returns[#returns + 1] = function() reply[at] = reply[at] - c.cost end
      elseif giveBack then
        returns[#returns + 1] = function()
          giveBack()
          reply[at] = reply[at] - c.cost
        end
      end
    end
    reply[at], reply[at + 1], reply[at + 2] = count + shift, c.left, ban
  end
  for _, finish in ipairs(reply[verdict] == 1 and keeps or returns) do
    finish()
  end
  for _, c in ipairs(bans) do
    redis.call('SET', c.banKey, 1, 'PX', int(c.ban))
  end
end
`,
  );
}

/**
 * Adds costs without asking for room, or takes negative ones off. ARGV: the counters.
 * Reply: for each counter the count, the ms until its window ends, and the ms that its ban lasts.
 */
export function adjustScript(clock: Clock): string {
  return script(
    clock,
    `local reply = {}
while nextKey <= #KEYS do
  local asked = readCounter()
  local c, shift = roomier(asked)
  local count
  if c.rolls then
    local before, window = used(c)
    count = math.min(MAX, math.max(0, before + c.cost))
    if count ~= before then
      keepRolling(c, count, window)
    end
  else
    -- At 0 and at 2^53 - 1 a count stands still.
    count = redis.call('BITFIELD', c.key, 'OVERFLOW', 'SAT', 'INCRBY', 'u63', 0, int(c.cost))[1]
    if count > MAX then
      count = MAX
      redis.call('BITFIELD', c.key, 'SET', 'u63', 0, int(MAX))
    end
    if count == 0 then
      redis.call('DEL', c.key)
    elseif count == c.cost then
      redis.call('PEXPIRE', c.key, int(c.left + GRACE))
    end
  end
  reply[#reply + 1] = count + shift
  reply[#reply + 1] = c.left
  reply[#reply + 1] = banLeft(asked)
end
`,
  );
}

/** Removes counters and their bans. ARGV: the counters. Reply: how many keys there were. */
export function resetScript(clock: Clock): string {
  return script(
    clock,
    `local reply = { 0 }
while nextKey <= #KEYS do
  local c = readCounter()
  reply[1] = reply[1] + redis.call('DEL', c.key)
  if c.banKey then
    reply[1] = reply[1] + redis.call('DEL', c.banKey)
  end
end
`,
  );
}
