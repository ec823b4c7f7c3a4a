/** Cost of a program that writes one byte at a time, on the whole path. */
import { afterAll, beforeAll, expect, test } from 'vitest'

import { createEgress } from '../../src/egress/egress.ts'
import { buildSbxd } from '../support/build-sbxd.ts'
import { type BackendFixture, Bench, sh } from '../contract/harness.ts'
import { localProcessFixture } from '../support/local-process-fixture.ts'

const CONNECTIONS = 200
const ROUNDS = 200
/** Header and offset of EGRESS_DATA. */
const FRAME_BYTES = 24

/**
 * The head of a request, byte by byte, in all connections in turn, no faster than somebody can read
 * one byte at a time.
 */
const DRIP = `
use Socket;
my ($port) = $ENV{http_proxy} =~ /:(\\d+)$/;
my @all = map {
  my $s;
  socket($s, PF_INET, SOCK_STREAM, 0) or die "$!";
  connect($s, pack_sockaddr_in($port, INADDR_LOOPBACK)) or die "$!";
  setsockopt($s, 6, 1, 1);
  syswrite($s, "GET http://a/");
  $s
} 1 .. ${CONNECTIONS};
for (1 .. ${ROUNDS}) { syswrite($_, "a") for @all; select(undef, undef, undef, 0.001) }
`

let fixture: BackendFixture
beforeAll(async () => {
  fixture = await localProcessFixture(buildSbxd)
}, 120_000)
afterAll(() => fixture.dispose())

test('single bytes, however many and in however many connections, arrive in few frames', async () => {
  const spec = fixture.spec()
  const bench = new Bench(fixture, spec, await fixture.backend.create(spec))
  const stream = await bench.open()
  const sandbox = await bench.connect({ stream })
  const user = createEgress({ allow: [] }).forUser('ann')
  if (user === undefined) throw new Error('ann has no way out')
  await sandbox.openEgress(user)
  let received = 0
  stream.on('data', (chunk: Buffer) => {
    received += chunk.length
  })
  const began = performance.now()
  expect(await sh(sandbox, ['perl', '-e', DRIP])).toMatchObject({ code: 0, err: '' })
  const frames = (received - CONNECTIONS * ROUNDS) / FRAME_BYTES
  // Four a millisecond, however long it takes, the first ones, and what is not DATA.
  expect(frames).toBeLessThan(1_000 + 5 * (performance.now() - began))
  await sandbox.close()
})
