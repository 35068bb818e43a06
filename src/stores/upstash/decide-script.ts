import { LUA_ADJUST, LUA_REMOVE } from "./adjust-script.ts";
import { LUA_NEW_BAN } from "./lua-bans.ts";
import { LUA_CHARGE } from "./lua-charge.ts";
import { type Clock, createScript } from "./script.ts";

/**
 * Creates the script that carries out entries, one after the other: it returns quota, adjusts and removes
 * counters, and decides groups. An entry fails alone.
 *
 * ARGV: the number of entries. For each entry: with the clock `edge`, the entry's time in ms. Then the
 * number of counters to return quota to; each of these counters, followed by the quota to return and the
 * number of the window in which this quota was charged. Then the number of counters to adjust; each of
 * these counters, followed by 1 or 0, and a number. With 1, the number is that of the window to which the
 * cost belongs (see `LUA_ADJUST`). Then the number of counters to remove; each of these counters, followed by
 * 1 if its count is kept. Then the number of equal requests, which is 1 unless the entry has only one group;
 * the number of groups; for each of them the number of its counters, and the counters. KEYS are in the same order.
 *
 * Reply: the time in ms; for each entry the reply of `adjust`, if it adjusts counters, and of `remove`, if it
 * removes counters; then for each group its parts. A part is the number of requests that were admitted
 * together, and for each counter the count, the ms until its window ends, the ms until its ban ends, and
 * the quota charged, which is negative if it was charged to the alternative. A part with the number 0 is a
 * denial. The parts end with a denial, or when all requests are admitted. For a group that failed, the
 * last part is the error's message. If the first group of an entry is not admitted, there is only the number -1
 * for each of the others.
 */
export function createDecideScript(clock: Clock): string {
  return createScript(
    clock,
    `${LUA_CHARGE}${LUA_NEW_BAN}${RETURN_UNUSED}${KEEP_DEBT}${DECIDE_GROUP}${DECIDE_TIMES}${LUA_ADJUST}${LUA_REMOVE}${runEntries(clock)}`,
  );
}

/**
 * `returnUnused(c, quota)`: returns unused quota to a counter whose window has not ended and whose count is
 * at least that quota. A counter with a fault is skipped. A failed return is ignored, because it must not
 * make a decision fail. The quota then stays charged. The script computes `0 - quota` instead of `-quota`,
 * because Lua would write -0 for a quota of 0.
 */
const RETURN_UNUSED = `local function returnUnused(c, quota)
  local results = redis.call('BITFIELD', c.key, 'OVERFLOW', 'FAIL',
    'INCRBY', 'u63', 0, digits(0 - quota), 'GET', 'u63', 0)
  if results[2] == 0 then
    redis.call('DEL', c.key)
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
 * `reply`. Counters that do not roll over are charged at once, and the charges are taken back if any
 * counter denies the group. Bans and counters that roll over are written in the final steps: a debt
 * first, because a charge replaces it.
 */
const DECIDE_GROUP = `local function decideGroup(counters, isTrial)
  local verdictAt = #reply + 1
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
        if c.banMs > 0 and not c.neverBans and not isTrial then
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
  if reply[verdictAt] == 0 then
    undo()
    for _, charge in ipairs(charges) do
      reply[charge.at], reply[charge.at + 3] = reply[charge.at] - charge.amount, 0
    end
  end
  for _, c in ipairs(counters) do
    keepDebt(c)
    if c.alternative then
      keepDebt(c.alternative)
    end
  end
  if reply[verdictAt] == 1 then
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
 * `decideTimes(counters, times)`: decides equal requests as if they came one after the other. Returns whether
 * all of them are admitted. `decidePart` first tries to charge all of them at once. If they do not all fit, the
 * counts of that trial tell how many do.
 *
 * `takeTimes(counters, times)`: sets the cost of this number of requests, or of the highest number that
 * could fit into an unused counter, and returns the number. So no cost is above 2^53 - 1, and no counter is
 * charged that this request alone could not charge. A counter that is only checked keeps its cost.
 */
const DECIDE_TIMES = `local function takeTimes(counters, times)
  for _, c in ipairs(counters) do
    if c.unit > 0 and not c.checkOnly then
      times = math.min(times, math.max(1, math.floor(c.ceiling / c.unit)))
    end
  end
  for _, c in ipairs(counters) do
    if not c.checkOnly then
      c.cost = c.unit * times
      if c.alternative then
        c.alternative.cost = c.cost
      end
    end
  end
  return times
end

local function fitting(counters, size)
  local fits = MAX_COUNT
  for index, c in ipairs(counters) do
    local at = size + 4 * index - 2
    local count, banMs = reply[at], reply[at + 2]
    if banMs > 0 or count + c.unit > c.ceiling then
      return 0
    elseif c.unit > 0 and not c.checkOnly then
      fits = math.min(fits, math.floor((c.ceiling - count) / c.unit))
    end
  end
  return fits
end

local function decidePart(counters, times)
  local size = #reply
  if times > 1 then
    times = takeTimes(counters, times)
    decideGroup(counters, times > 1)
    if reply[size + 1] == 0 and times > 1 then
      times = takeTimes(counters, math.max(1, fitting(counters, size)))
      undo()
      truncate(size)
      decideGroup(counters)
    end
  else
    takeTimes(counters, 1)
    decideGroup(counters)
  end
  reply[size + 1] = reply[size + 1] * times
  commit()
end

local function decideTimes(counters, times)
  while times > 0 do
    local at = #reply + 1
    if not try(decidePart, counters, times) or reply[at] == 0 then
      return false
    end
    times = times - reply[at]
  end
  return true
end

`;

/** Runs all entries. The arguments of an entry are read even if a group is skipped or fails. */
function runEntries(clock: Clock): string {
  return `local function readGroup()
  local counters = {}
  for index = 1, nextArg() do
    counters[index] = readCounter()
    counters[index].unit = counters[index].cost
  end
  return counters
end

reply[1] = now
for _ = 1, nextArg() do
  ${clock === "edge" ? "now = nextArg()" : ""}
  for _ = 1, nextArg() do
    local c = readCounter()
    local quota, window = nextArg(), nextArg()
    if window == c.window and not c.fault then
      pcall(returnUnused, c, quota)
    end
  end
  local adjusted = {}
  for index = 1, nextArg() do
    local c = readCounter()
    local isDated, window = nextArg() == 1, nextArg()
    c.chargedIn = isDated and window or nil
    adjusted[index] = c
  end
  if #adjusted > 0 then
    try(adjust, adjusted)
  end
  local removed = {}
  for index = 1, nextArg() do
    removed[index] = readCounter()
    removed[index].keepsCount = nextArg() == 1
  end
  if #removed > 0 then
    try(remove, removed)
  end
  local times, isAdmitted = nextArg(), true
  for index = 1, nextArg() do
    local counters = readGroup()
    if not isAdmitted then
      reply[#reply + 1] = -1
    elseif not decideTimes(counters, times) and index == 1 then
      isAdmitted = false
    end
  end
end
`;
}
