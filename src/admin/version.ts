/** The version of Weir, as in its package.json. A Worker cannot read that file. */
export const VERSION = "0.1.0";
