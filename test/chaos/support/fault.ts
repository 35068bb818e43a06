/** Something that can go wrong with a store, on a stage where it can be brought about. */
export type Fault<Stage> = {
  /** What the store does: "a store that …". */
  does: string;
  /** What the log says; undefined where requests are decided all the same. */
  cause: string | undefined;
  begin(stage: Stage): unknown;
  end(stage: Stage): unknown;
};
