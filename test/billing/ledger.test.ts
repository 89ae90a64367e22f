import test from 'ava';
import { testLedgerContract } from '../contract/ledger.ts';
import { testLedgerModel } from '../contract/ledgerModel.ts';
import { testRepeatedChargesContract } from '../contract/repeatedCharges.ts';
import { testVerifyContract } from '../contract/verify.ts';
import { sqlitePlace } from '../support/stores.ts';

testLedgerContract(test, sqlitePlace);
testRepeatedChargesContract(test, sqlitePlace);
testVerifyContract(test, sqlitePlace);
testLedgerModel(test, sqlitePlace, 10_000);
