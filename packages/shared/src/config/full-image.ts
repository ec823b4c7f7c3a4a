/**
 * How the larger image of the sandboxes stands, while there is something to say: the launcher
 * writes it, the page shows it.
 */

/** In the data folder. */
export const FULL_IMAGE_FILE = 'run/full-image.json'

export interface FullImageState {
  state: 'building' | 'failed'
}
