/**
 * How long tests wait for an effect that normally comes at once. The time is generous, because a busy
 * machine is many times slower. Only a test that fails waits this long.
 */
export const PATIENCE = { timeout: 60_000, interval: 10 } as const;
