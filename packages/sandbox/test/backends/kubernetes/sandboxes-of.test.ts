/** Sandboxes as Pods and claims show them, also of a claim that was interrupted. */
import { expect, test } from 'vitest'

import { sandboxesOf } from '../../../src/backends/kubernetes/sandboxes-of.ts'
import type { PersistentVolumeClaim, Pod } from '../../../src/backends/kubernetes/objects.ts'
import { LABEL } from '../../../src/names.ts'

const SLOT = {
  'sandlot.dev/deployment': 'team',
  'sandlot.dev/role': 'sandbox',
  'sandlot.dev/slot': 'abcdefgh',
}
const TAG = '0123456789abcdef'
const owned = (generation: number) => ({
  ...SLOT,
  'sandlot.dev/owner': TAG,
  'sandlot.dev/generation': String(generation),
})
const pool = { ...SLOT, 'sandlot.dev/generation': '0' }

function claim(labels: Record<string, string>, sandbox?: string): PersistentVolumeClaim {
  const annotations: Record<string, string> = sandbox === undefined ? {} : { 'sandlot.dev/sandbox': sandbox }
  return {
    metadata: { name: 'sbx-team-abcdefgh', labels, annotations },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1' } } },
  }
}

function pod(name: string, labels: Record<string, string>, change: Partial<Pod> = {}, ending = false): Pod {
  return {
    metadata: { name, labels, ...(ending ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
    spec: { containers: [] },
    ...change,
  }
}

const running: Partial<Pod> = {
  status: {
    phase: 'Running',
    containerStatuses: [{ name: 'sbxd', ready: true, restartCount: 0, state: { running: {} } }],
  },
}
const NAME = `sbx-team-abcdefgh-${TAG}`

test.each<[string, Pod[], PersistentVolumeClaim[], { id: string; name: string; state: string }[]]>([
  ['nothing', [], [], []],
  ['a claim alone, whose sandbox was removed', [], [claim(owned(3))], []],
  [
    'a claim alone is a stopped sandbox',
    [],
    [claim(owned(3), 'sbx-team-abcdefgh-1')],
    [{ id: 'sbx-team-abcdefgh-1', name: `${NAME}-3`, state: 'stopped' }],
  ],
  [
    'a gated Pod is created',
    [pod('sbx-team-abcdefgh-0', pool, { status: { phase: 'Pending' } })],
    [claim(pool, 'sbx-team-abcdefgh-0')],
    [{ id: 'sbx-team-abcdefgh-0', name: 'sbx-team-abcdefgh', state: 'created' }],
  ],
  [
    'half a claim: the owner of the PersistentVolumeClaim counts',
    [pod('sbx-team-abcdefgh-0', pool, running)],
    [claim(owned(7), 'sbx-team-abcdefgh-0')],
    [{ id: 'sbx-team-abcdefgh-0', name: `${NAME}-7`, state: 'running' }],
  ],
  [
    'a replaced Pod keeps its own generation',
    [pod('sbx-team-abcdefgh-1', owned(1), running), pod('sbx-team-abcdefgh-2', owned(2))],
    [claim(owned(2), 'sbx-team-abcdefgh-2')],
    [
      { id: 'sbx-team-abcdefgh-1', name: `${NAME}-1`, state: 'running' },
      { id: 'sbx-team-abcdefgh-2', name: `${NAME}-2`, state: 'created' },
    ],
  ],
  [
    'a Pod that ends is stopped',
    [pod('sbx-team-abcdefgh-1', owned(1), running, true)],
    [claim(owned(1), 'sbx-team-abcdefgh-1')],
    [{ id: 'sbx-team-abcdefgh-1', name: `${NAME}-1`, state: 'stopped' }],
  ],
  [
    'one that ends and was removed is being removed',
    [pod('sbx-team-abcdefgh-1', owned(1), running, true)],
    [claim(owned(1))],
    [{ id: 'sbx-team-abcdefgh-1', name: `${NAME}-1`, state: 'removing' }],
  ],
  [
    'one that was evicted is stopped',
    [pod('sbx-team-abcdefgh-1', owned(1), { status: { phase: 'Failed', reason: 'Evicted' } })],
    [claim(owned(1), 'sbx-team-abcdefgh-1')],
    [{ id: 'sbx-team-abcdefgh-1', name: `${NAME}-1`, state: 'stopped' }],
  ],
  [
    'a Pod whose claim is gone still shows',
    [pod('sbx-team-abcdefgh-1', owned(1), running)],
    [],
    [{ id: 'sbx-team-abcdefgh-1', name: `${NAME}-1`, state: 'running' }],
  ],
])('%s', (_, pods, claims, expected) => {
  const seen = sandboxesOf(pods, claims)
  expect(seen.map(({ id, name, state }) => ({ id, name, state }))).toEqual(expected)
  for (const { labels } of seen)
    expect(labels).toMatchObject({ [LABEL.slot]: 'abcdefgh', [LABEL.volume]: 'sbx-team-abcdefgh' })
})
