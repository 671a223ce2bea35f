from txnkafka.client.consumer.assignors.range_assignor import assign_ranges

assign_cooperatively = assign_sticky = assign_ranges
