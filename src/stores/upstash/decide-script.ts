import { LUA_NEW_BAN } from "./lua-bans.ts";
import { LUA_CHARGE } from "./lua-charge.ts";
import { type Clock, createScript } from "./script.ts";

/**
 * Creates the script that returns unused quota and then decides groups of counters.
 *
 * ARGV: the number of groups; the number of counters to return quota to; each of these counters,
 * followed by the quota to return and the number of the window in which this quota was charged;
 * then for each group the number of its counters and the counters. For a shadow group, the number
 * of counters is negative. For a dependent group, a 0 comes before the number. The script must know
 * these groups, because their failure must not affect other groups. KEYS are in the same order.
 *
 * Reply: the time in ms; then for each group 1 (admitted) or 0 (denied), and for each of its
 * counters the count, the ms until its window ends, the ms until its ban ends, and the quota
 * charged, which is negative if it was charged to the alternative. For a shadow or dependent group
 * that failed, the reply has only the integer 2. For a dependent group that is skipped, because an
 * enforced group was denied, it has only the integer 3.
 */
export function createDecideScript(clock: Clock): string {
  return createScript(
    clock,
    `${LUA_CHARGE}${LUA_NEW_BAN}${RETURN_UNUSED}${KEEP_DEBT}${DECIDE_GROUP}${TRY_GROUP}${DECIDE_GROUPS}`,
  );
}

/**
 * Returns unused quota to each counter whose window has not ended and whose count is at least that
 * quota. A counter with a fault is skipped. A failed return is ignored, because it must not make a
 * decision fail. The quota then stays charged. The script computes `0 - quota` instead of `-quota`,
 * because Lua would write -0 for a quota of 0.
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
  if window == c.window and not c.fault then
    pcall(returnUnused, c, quota)
  end
end

`;

/**
 * `keepDebt(c)`: lets the key of a counter that rolls over live longer, if the limit was lowered since the
 * key was written. Otherwise the key would expire before the lower limit has repaid the debt, and the
 * client would get its whole capacity at once.
 */
const KEEP_DEBT = `local function keepDebt(c)
  local debt = c.debt
  if debt and debt.left > 0 and c.cost ~= 0 and c.limit > 0 and c.limit < debt.limit then
    finalSteps[#finalSteps + 1] = function()
      storeRolling(c, debt.left, debt.writtenIn, debt.count)
    end
  end
end

`;

/**
 * `decideGroup(counters)`: charges all counters of a group or none, and adds the verdict to
 * `reply`. `verdictAt` is the index of the verdict in the reply. Counters that do not roll over are
 * charged at once, and the charges are taken back if any counter denies the group. Bans and
 * counters that roll over are written in the final steps: a debt first, because a charge replaces it.
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
  for _, c in ipairs(counters) do
    refuseFault(c)
  end
  local charges, bans = {}, {}
  for _, c in ipairs(counters) do
    local at, banMs, count, countOffset, amount = #reply + 1, readBanMs(c), 0, 0, 0
    local chosen = c
    if banMs > 0 then
      reply[verdictAt] = 0
      count = readCount(c)
    else
      local hasQuota, write
      chosen, countOffset = chooseCounter(c)
      hasQuota, count, amount, write = chargeCounter(chosen)
      if not hasQuota then
        reply[verdictAt] = 0
        if c.banMs > 0 and not c.neverBans then
          banMs, bans[#bans + 1] = newBan(c)
        end
      elseif amount > 0 then
        charges[#charges + 1] = { at = at, amount = amount, write = write }
      end
    end
    reply[at], reply[at + 1], reply[at + 2], reply[at + 3] =
      math.min(MAX_COUNT, count + countOffset), chosen.resetMs, banMs,
      chosen == c and amount or -amount
  end
  for _, c in ipairs(counters) do
    keepDebt(c)
    if c.alternative then
      keepDebt(c.alternative)
    end
  end
  if reply[verdictAt] == 0 then
    undoGroup(mark, charges)
  else
    for _, charge in ipairs(charges) do
      finalSteps[#finalSteps + 1] = charge.write
    end
  end
  for _, writeBan in ipairs(bans) do
    finalSteps[#finalSteps + 1] = writeBan
  end
end

`;

/**
 * `tryGroup(counters)`: decides a shadow or dependent group. If that fails, its verdict becomes 2,
 * and the script continues with the next group.
 */
const TRY_GROUP = `local function tryGroup(counters)
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
  local isDenied = false
  for _ = 1, groups do
    local size, counters, at = nextArg(), {}, #reply + 1
    local isDependent = size == 0
    if isDependent then
      size = nextArg()
    end
    for index = 1, math.abs(size) do
      counters[index] = readCounter()
    end
    if isDependent and isDenied then
      reply[at] = 3
    elseif isDependent or size < 0 then
      tryGroup(counters)
    else
      decideGroup(counters)
      isDenied = isDenied or reply[at] == 0
    end
  end
end)
if failure then
  return failure
end
`;
