/**
 * `chargeField(c, amount, ceiling)`: charges an amount unless the count would then exceed the
 * ceiling. Returns whether the amount was charged, and the count.
 *
 * A single BITFIELD command checks and charges. Let `headroom` be 2^63 - 1 - ceiling. The first
 * step adds `amount` and `headroom` to the count. This addition overflows if and only if count +
 * amount > ceiling. If it overflows, OVERFLOW FAIL changes nothing. The second step subtracts
 * `headroom`, which leaves count + amount. If the first step has failed, the result of the second
 * step would be negative, because no count comes near 2^63. So the second step fails too.
 *
 * `fieldMaxMinus(number)`: returns 2^63 - 1 minus a number, as decimal digits. It computes the
 * digits in two halves, because Lua's numbers are exact only up to 2^53.
 */
const CHARGE_FIELD = `local function fieldMaxMinus(number)
  local high, low = 9223372036 - math.floor(number / 1e9), 854775807 - number % 1e9
  if low < 0 then
    high, low = high - 1, low + 1e9
  end
  return string.format('%.0f%09.0f', high, low)
end

local function chargeField(c, amount, ceiling)
  local results = redis.call('BITFIELD', c.key, 'OVERFLOW', 'FAIL',
    'INCRBY', 'u63', 0, fieldMaxMinus(ceiling - amount),
    'INCRBY', 'u63', 0, '-' .. fieldMaxMinus(ceiling), 'GET', 'u63', 0)
  return results[1] and true or false, results[3]
end

`;

/**
 * `chargeFixed(c)`: charges a counter that does not roll over. Returns whether it was charged, its
 * count, and the amount charged.
 *
 * The first attempt charges the block that an unused counter would grant. The ceiling of this
 * attempt is lowered, so that it succeeds only if the quota left still allows a block of this size.
 * If it fails although the cost itself fits, a second command charges the smaller block that the
 * count allows. An attempt never fails on an unused counter. This matters, because a failed
 * BITFIELD creates the key of an unused counter.
 */
const CHARGE_FIXED = `local function blockFor(quotaLeft)
  return math.floor(quotaLeft / BLOCK_SHARE)
end

local function chargeFixed(c)
  local amount = math.max(c.cost, math.min(c.block, blockFor(c.ceiling)))
  local ceiling = c.ceiling
  if amount > c.cost then
    ceiling = ceiling - (BLOCK_SHARE - 1) * amount
  end
  local charged, count = chargeField(c, amount, ceiling)
  if not charged and amount > c.cost and count + c.cost <= c.ceiling then
    amount = math.max(c.cost, blockFor(c.ceiling - count))
    charged, count = chargeField(c, amount, c.ceiling)
  end
  if not charged then
    return false, count, 0
  end
  undoSteps[#undoSteps + 1] = function()
    if count == amount then
      redis.call('DEL', c.key)
    else
      redis.call('BITFIELD', c.key, 'INCRBY', 'u63', 0, digits(-amount))
    end
  end
  if count == amount then
    redis.call('PEXPIRE', c.key, digits(c.resetMs + EXPIRY_GRACE_MS))
  end
  return true, count, amount
end

`;

/**
 * `chargeRolling(c)`: does the same as `chargeFixed(c)` for a counter that rolls over. The fourth
 * result is a function that stores the new count. It must run only if the whole group is admitted.
 */
const CHARGE_ROLLING = `local function chargeRolling(c)
  local count = readCount(c)
  if count + c.cost > c.ceiling then
    return false, count, 0
  end
  local amount = math.max(c.cost, math.min(c.block, blockFor(c.ceiling - count)))
  return true, count + amount, amount, function() writeRolling(c, count + amount) end
end

`;

/**
 * `chargeCounter(c)`: charges any counter, and returns the same values as `chargeRolling`. A
 * counter that this request cannot charge is only read, because BITFIELD would create its key.
 */
const CHARGE_COUNTER = `local function chargeCounter(c)
  if c.checkOnly or c.cost == 0 or c.cost > c.ceiling then
    local count = readCount(c)
    return count + c.cost <= c.ceiling, count, 0
  end
  if c.rollsOver then
    return chargeRolling(c)
  end
  return chargeFixed(c)
end

`;

/** Lua functions that charge a single counter. */
export const LUA_CHARGE = `${CHARGE_FIELD}${CHARGE_FIXED}${CHARGE_ROLLING}${CHARGE_COUNTER}`;
