import { MAX_COUNT } from "../../engine/counter.ts";
import { BLOCK_SHARE, EXPIRY_GRACE_MS } from "../../engine/fixed-window.ts";

const CONSTANTS = `local MAX_COUNT = ${MAX_COUNT}
local EXPIRY_GRACE_MS = ${EXPIRY_GRACE_MS}
local BLOCK_SHARE = ${BLOCK_SHARE}

`;

/**
 * `readCounter()`: returns the next counter from KEYS and ARGV. Its fields have the names of
 * `Counter` in TypeScript. It has two more fields: `window` is the number of the current window,
 * and `resetMs` is the time until that window ends, in milliseconds.
 */
const READ_COUNTER = `local function readCounter()
  local c = { limit = nextArg(), windowMs = nextArg(), offsetMs = nextArg(), cost = nextArg(),
    ceiling = nextArg() }
  c.rollsOver, c.checkOnly, c.block = nextArg() == 1, nextArg() == 1, nextArg()
  c.banMs, c.neverBans = nextArg(), nextArg() == 1
  local hasAlternative = nextArg() == 1
  c.window = math.floor((now - c.offsetMs) / c.windowMs)
  c.resetMs = (c.window + 1) * c.windowMs + c.offsetMs - now
  local suffix = c.rollsOver and '' or ':' .. digits(c.window)
  c.key = nextKey(suffix)
  if c.banMs > 0 then
    c.banKey = nextKey('')
  end
  if hasAlternative then
    c.alternative = { limit = nextArg(), ceiling = nextArg(), key = nextKey(suffix),
      windowMs = c.windowMs, cost = c.cost, rollsOver = c.rollsOver, checkOnly = c.checkOnly,
      block = c.block, window = c.window, resetMs = c.resetMs }
  end
  return c
end

`;

/**
 * `readCount(c)`: returns the counter's count, and the number of the window that this count belongs
 * to. That window is later than the current window if the clock has stepped back since the last
 * charge.
 */
const READ_COUNT = `local function readCount(c)
  if not c.rollsOver then
    return redis.call('BITFIELD_RO', c.key, 'GET', 'u63', 0)[1], c.window
  end
  local stored = redis.call('GET', c.key)
  if not stored then
    return 0, c.window
  end
  local writtenIn, count = string.match(stored, '^(-?%d+):(%d+)$')
  writtenIn, count = tonumber(writtenIn), tonumber(count)
  local window = math.max(c.window, writtenIn)
  return math.max(0, count - (window - writtenIn) * c.limit), window
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
 * `writeRolling(c, count, window)`: stores a counter that rolls over. Its key expires when the
 * grants of later windows have repaid the whole count.
 */
const WRITE_ROLLING = `local function writeRolling(c, count, window)
  local windows = 1
  if c.limit > 0 then
    windows = math.max(1, math.ceil(count / c.limit))
  end
  local ttlMs = c.resetMs + (window - c.window + windows - 1) * c.windowMs + EXPIRY_GRACE_MS
  redis.call('SET', c.key, digits(window) .. ':' .. digits(count),
    'PX', digits(math.min(ttlMs, MAX_COUNT)))
end

`;

/** `readBanMs(c)`: returns the milliseconds until the client's ban ends; 0 if there is no ban. */
const READ_BAN = `local function readBanMs(c)
  if c.banMs == 0 then
    return 0
  end
  return math.max(0, redis.call('PTTL', c.banKey))
end

`;

/** Lua functions that read and write a single counter. */
export const LUA_COUNTERS = `${CONSTANTS}${READ_COUNTER}${READ_COUNT}${CHOOSE_COUNTER}${WRITE_ROLLING}${READ_BAN}`;
