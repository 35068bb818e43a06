import { LUA_CHARGE } from "./lua-charge.ts";
import { type Clock, createScript } from "./script.ts";

/**
 * Creates the script that returns unused quota and then decides groups of counters.
 *
 * ARGV: the number of groups; the number of counters to return quota to; each of these counters,
 * followed by the quota to return and the number of the window in which this quota was charged;
 * then for each group the number of its counters and the counters. The number of counters is
 * negative for a shadow group. The sign marks the groups whose failure must not affect the rest of
 * the groups. KEYS are in the same order.
 *
 * Reply: the time in ms; then for each group 1 (admitted) or 0 (denied), and for each of its
 * counters the count, the ms until its window ends, the ms until its ban ends, and the quota
 * charged. For a shadow group that failed, the reply has only the integer 2.
 */
export function createDecideScript(clock: Clock): string {
  return createScript(
    clock,
    `${LUA_CHARGE}${RETURN_UNUSED}${DECIDE_GROUP}${TRY_SHADOW_GROUP}${DECIDE_GROUPS}`,
  );
}

/**
 * Returns unused quota to each counter whose window has not ended and whose count is at least that
 * quota. A failed return is ignored, because a decision must not fail if a return fails. The quota
 * then stays charged. The script computes `0 - quota` instead of `-quota`, because Lua would write
 * -0 for a quota of 0.
 */
const RETURN_UNUSED = `local function returnUnused(c, quota)
  local results = redis.call('BITFIELD', c.key, 'OVERFLOW', 'FAIL',
    'INCRBY', 'u63', 0, digits(0 - quota), 'GET', 'u63', 0)
  if results[2] == 0 then
    redis.call('DEL', c.key)
  end
end

local groups = nextArg()
for _ = 1, nextArg() do
  local c = readCounter()
  local quota, window = nextArg(), nextArg()
  if window == c.window then
    pcall(returnUnused, c, quota)
  end
end

`;

/**
 * `decideGroup(counters)`: charges all counters of a group or none, and adds the verdict to
 * `reply`. `verdictAt` is the index of the verdict in the reply. Counters that do not roll over are
 * charged at once, and the charges are taken back if any counter denies the group. Bans and
 * counters that roll over are written in the final steps.
 */
const DECIDE_GROUP = `local reply = { now }

local function undoGroup(mark, charges)
  undoTo(mark)
  for _, charge in ipairs(charges) do
    reply[charge.at], reply[charge.at + 3] = reply[charge.at] - charge.amount, 0
  end
end

local function decideGroup(counters)
  local verdictAt, mark = #reply + 1, #undoSteps
  reply[verdictAt] = 1
  local charges, bans = {}, {}
  for _, c in ipairs(counters) do
    local at, banMs, count, countOffset, amount = #reply + 1, readBanMs(c), 0, 0, 0
    if banMs > 0 then
      reply[verdictAt] = 0
      count = readCount(c)
    else
      local chosen, hasQuota, write
      chosen, countOffset = chooseCounter(c)
      hasQuota, count, amount, write = chargeCounter(chosen)
      if not hasQuota then
        reply[verdictAt] = 0
        if c.banMs > 0 and not c.neverBans then
          banMs = c.banMs
          bans[#bans + 1] = c
        end
      elseif amount > 0 then
        charges[#charges + 1] = { at = at, amount = amount, write = write }
      end
    end
    reply[at], reply[at + 1], reply[at + 2], reply[at + 3] =
      math.min(MAX_COUNT, count + countOffset), c.resetMs, banMs, amount
  end
  if reply[verdictAt] == 0 then
    undoGroup(mark, charges)
  else
    for _, charge in ipairs(charges) do
      finalSteps[#finalSteps + 1] = charge.write
    end
  end
  for _, c in ipairs(bans) do
    finalSteps[#finalSteps + 1] = function()
      redis.call('SET', c.banKey, 1, 'PX', digits(c.banMs))
    end
  end
end

`;

/**
 * `tryShadowGroup(counters)`: decides a shadow group. If that fails, its verdict becomes 2, and the
 * script continues with the next group.
 */
const TRY_SHADOW_GROUP = `local function tryShadowGroup(counters)
  local verdictAt, mark = #reply + 1, #undoSteps
  if not pcall(decideGroup, counters) then
    undoTo(mark)
    for at = #reply, verdictAt, -1 do
      reply[at] = nil
    end
    reply[verdictAt] = 2
  end
end

`;

const DECIDE_GROUPS = `local failure = runOrUndo(function()
  for _ = 1, groups do
    local size, counters = nextArg(), {}
    for at = 1, math.abs(size) do
      counters[at] = readCounter()
    end
    if size >= 0 then
      decideGroup(counters)
    else
      tryShadowGroup(counters)
    end
  end
end)
if failure then
  return failure
end
`;
