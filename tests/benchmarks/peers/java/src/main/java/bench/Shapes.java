package bench;

/** What the JSON topics hold: the same fields, in the same order, as in jobs.py. */
final class Shapes {
    record Event(long id, String user, String kind, String page, String country, long duration_ms, long cents) {}

    record Visit(long id, String user, String page, String country, long seconds) {}

    record Order(long id, String item, long quantity, long cents) {}

    record Customer(String name, String city, String tier) {}

    record Sale(long id, String customer, String city, String tier, long total_cents) {}

    private Shapes() {}
}
