/**
 * State of the larger sandbox image while it is being built or after that failed: written by the
 * launcher, shown by the page.
 */

/** In the data folder. */
export const FULL_IMAGE_FILE = 'run/full-image.json'

export interface FullImageState {
  state: 'building' | 'failed'
}
