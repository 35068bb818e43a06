import { MAX_COUNT } from "../../engine/counter.ts";
import { BLOCK_SHARE, EXPIRY_GRACE_MS } from "../../engine/fixed-window.ts";
import { LUA_READ_BAN } from "./lua-bans.ts";

const CONSTANTS = `local MAX_COUNT = ${MAX_COUNT}
local EXPIRY_GRACE_MS = ${EXPIRY_GRACE_MS}
local BLOCK_SHARE = ${BLOCK_SHARE}

`;

/**
 * `readCalendar(c)`: sets the current window of a calendar counter. Lua knows no time zones, so the
 * arguments contain the number of the window before the Worker's current one, and the starts of this
 * and the next three windows. If the current time is not in the first three, the counter has a
 * `fault`, because the clock of Redis or of the Worker is wrong by a whole window. The fault is not
 * raised here, because the script must read the arguments of all groups, also if one of them fails.
 * `windowMs` becomes the longest length of the windows, from which `writeRolling` computes when a key
 * may expire. `ends` has the ends of the three windows, up to the window `lastEnd`.
 */
const READ_CALENDAR = `local function readCalendar(c)
  local window, start = nextArg(), nextArg()
  c.windowMs, c.ends, c.lastEnd = c.offsetMs, {}, window + 2
  for at = window, window + 2 do
    local nextStart = nextArg()
    c.ends[at] = nextStart
    if start <= now and now < nextStart then
      c.window, c.resetMs = at, nextStart - now
    end
    start = nextStart
  end
  if not c.window then
    c.window, c.fault = 0, 'the clocks of Redis and the Worker differ by a whole window'
  end
end

`;

/**
 * `readCounter()`: returns the next counter from KEYS and ARGV. Its fields have the names of
 * `Counter` in TypeScript. It has two more fields: `window` is the number of the current window,
 * and `resetMs` is the time until that window ends, in milliseconds. A counter with a `fault` has
 * no valid window, so no command may use the counter.
 */
const READ_COUNTER = `local function readCounter()
  local c = { limit = nextArg(), windowMs = nextArg(), offsetMs = nextArg(), cost = nextArg(),
    ceiling = nextArg() }
  c.rollsOver, c.checkOnly, c.block = nextArg() == 1, nextArg() == 1, nextArg()
  c.banMs, c.neverBans = nextArg(), nextArg() == 1
  if c.banMs < 0 then
    c.lengthsMs = {}
    for at = 1, -c.banMs do
      c.lengthsMs[at] = nextArg()
    end
    c.banMs, c.forgetAfterMs = c.lengthsMs[1], nextArg()
  end
  if c.windowMs == 0 then
    readCalendar(c)
  else
    c.window = math.floor((now - c.offsetMs) / c.windowMs)
    c.resetMs = (c.window + 1) * c.windowMs + c.offsetMs - now
  end
  local hasAlternative = nextArg() == 1
  local suffix = c.rollsOver and '' or ':' .. digits(c.window)
  c.key = nextKey(suffix)
  if c.banMs > 0 then
    c.banKey = nextKey('')
  end
  if c.lengthsMs then
    c.strikesKey = nextKey('')
  end
  if hasAlternative then
    c.alternative = { limit = nextArg(), ceiling = nextArg(), key = nextKey(suffix),
      windowMs = c.windowMs, cost = c.cost, rollsOver = c.rollsOver, checkOnly = c.checkOnly,
      block = c.block, window = c.window, resetMs = c.resetMs, ends = c.ends,
      lastEnd = c.lastEnd }
  end
  return c
end

`;

/** `refuseFault(c)`: fails if the counter has a fault. */
const REFUSE_FAULT = `local function refuseFault(c)
  if c.fault then
    error(c.fault, 0)
  end
  return c
end

`;

/**
 * `enterWindow(c, window)`: sets `window` and `resetMs` for a window that is later than the one that
 * the clock shows. If the script does not know the end of a calendar window, `resetMs` is too long,
 * so that no client retries too early.
 */
const ENTER_WINDOW = `local function enterWindow(c, window)
  local known = c.window
  if c.ends then
    known = math.min(window, c.lastEnd)
    c.resetMs = c.ends[known] - now
  end
  c.resetMs = math.min(MAX_COUNT, c.resetMs + (window - known) * c.windowMs)
  c.window = window
end

`;

/**
 * `readCount(c)`: returns the counter's count, and the number of the window that this count belongs
 * to. If the last charge was made in a later window than the one that the clock shows, that window
 * becomes the counter's current window. This happens if a clock has stepped back, or if the start of
 * the windows was changed. `debt` is what is left to repay of a stored count, with the limit by which its
 * key expires. A value that an earlier version has stored names no limit.
 */
const READ_COUNT = `local function readCount(c)
  if not c.rollsOver then
    return redis.call('BITFIELD_RO', c.key, 'GET', 'u63', 0)[1], c.window
  end
  local stored = redis.call('GET', c.key)
  if not stored then
    return 0, c.window
  end
  local writtenIn, count, limit = string.match(stored, '^(-?%d+):(%d+):?(%d*)$')
  writtenIn, count = tonumber(writtenIn), tonumber(count)
  if writtenIn > c.window then
    enterWindow(c, writtenIn)
  end
  local left = math.max(0, count - (c.window - writtenIn) * c.limit)
  c.debt = { left = left, writtenIn = writtenIn, count = count, limit = tonumber(limit) or MAX_COUNT }
  return left, c.window
end

`;

/**
 * `chooseCounter(c)`: chooses between a counter and its alternative. It returns the counter with
 * more quota left, or with less if the cost is negative. The second result is a number to add to
 * that counter's count, so that `ceiling - count` of the requested counter is the chosen counter's
 * quota left.
 */
const CHOOSE_COUNTER = `local function chooseCounter(c)
  local alternative = c.alternative
  if alternative then
    local hasMore = alternative.ceiling - readCount(alternative) > c.ceiling - readCount(c)
    if hasMore == (c.cost >= 0) then
      return alternative, c.ceiling - alternative.ceiling
    end
  end
  return c, 0
end

`;

/**
 * `storeRolling(c, left, window, count)`: stores a count of a window. The key expires when the grants of
 * later windows have repaid what is left of the count. The value has the limit too, so that a script can
 * see without a further command that a lower limit needs more time.
 *
 * `writeRolling(c, count)`: stores a counter that rolls over, which `readCount` has read.
 */
const WRITE_ROLLING = `local function storeRolling(c, left, window, count)
  local windows = 1
  if c.limit > 0 then
    windows = math.max(1, math.ceil(left / c.limit))
  end
  local ttlMs = c.resetMs + (windows - 1) * c.windowMs + EXPIRY_GRACE_MS
  redis.call('SET', c.key, digits(window) .. ':' .. digits(count) .. ':' .. digits(c.limit),
    'PX', digits(math.min(ttlMs, MAX_COUNT)))
end

local function writeRolling(c, count)
  storeRolling(c, count, c.window, count)
end

`;

/** Lua functions that read and write a single counter. */
export const LUA_COUNTERS = `${CONSTANTS}${READ_CALENDAR}${READ_COUNTER}${REFUSE_FAULT}${ENTER_WINDOW}${READ_COUNT}${CHOOSE_COUNTER}${WRITE_ROLLING}${LUA_READ_BAN}`;
