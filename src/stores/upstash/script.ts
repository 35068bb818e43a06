import { MAX_COUNT } from "../../engine/counter.ts";
import { BLOCK_SHARE, EXPIRY_GRACE_MS } from "../../engine/fixed-window.ts";

/**
 * Whose clock places the windows: `redis`, one clock for the world, at the price of one command
 * (TIME); or `edge`, the Worker's.
 */
export type Clock = "redis" | "edge";

/**
 * The fixed-window engine as a Lua script: the twin of engine/fixed-window.ts. What all of its
 * scripts share is here, what each does in `body`, which sets `reply`.
 *
 *   KEYS  one for each counter, all groups in a row; behind it that of its ban, and that of the
 *         counter to choose instead, where there are such. Clock `edge`: as they are stored, so
 *         that every key the script touches is declared. Clock `redis`: without their windows,
 *         because only TIME tells these.
 *   ARGV  the edge's time in ms, or 0; then what each script says of itself. A counter is eleven
 *         integers: limit, window in ms, offset in ms, cost, ceiling, 1 if it rolls over, 1 if it
 *         is only checked, block, ban in ms, 1 if it never bans, 1 if there is one to choose
 *         instead; that one is two more, limit and ceiling.
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
export function fixedWindowScript(clock: Clock, body: string): string {
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
local GRACE = ${EXPIRY_GRACE_MS}
local SHARE = ${BLOCK_SHARE}`;

const NOW: Record<Clock, string> = {
  redis: `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`,
  edge: "local now = tonumber(ARGV[1])",
};

const COUNTERS = `local function readCounter()
  local c = { limit = arg(), length = arg(), offset = arg(), cost = arg(), ceiling = arg() }
  c.rolls, c.checkOnly, c.block = arg() == 1, arg() == 1, arg()
  c.ban, c.neverBans = arg(), arg() == 1
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
      rolls = c.rolls, checkOnly = c.checkOnly, block = c.block, window = c.window, left = c.left }
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

-- What takes back each charge made so far, and what remains to be written once nothing can fail.
local undos, finishes = {}, {}

local function undoTo(mark)
  for at = #undos, mark + 1, -1 do
    undos[at]()
    undos[at] = nil
  end
end

-- Runs all of a script's work. A command fails on a key that holds another type, and Redis keeps
-- what a script wrote before that; so it is undone here. Costs no command unless something fails.
local function attempt(work)
  local done, failure = pcall(work)
  if not done then
    undoTo(0)
    -- A table since Redis 7, a text before.
    return type(failure) == 'table' and failure or redis.error_reply(tostring(failure))
  end
  for _, finish in ipairs(finishes) do
    finish()
  end
end

local function banLeft(c)
  if c.ban == 0 then
    return 0
  end
  return math.max(0, redis.call('PTTL', c.banKey))
end
`;
